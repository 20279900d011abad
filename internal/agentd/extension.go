package agentd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/cric-talk/guards/internal/crash"
)

// runInLambda serves as an extension of the app's function, until Lambda ends the environment.
//
// Lambda starts the app's runtime once the extension has registered, so the agent listens
// before. It registers for SHUTDOWN alone: for an invocation, Lambda would wait for it. Between
// invocations Lambda freezes it, so nothing here runs by a timer. An extension that exits ends
// the function, with status 0, too. So whatever is wrong, this returns only at SHUTDOWN.
func (a *agent) runInLambda(e extension) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		defer crash.Contain()
		for range signals { // Lambda does not promise one; SHUTDOWN ends the agent
			a.flush()
		}
	}()
	listener, err := a.config.address.listen(context.Background(), a.config.mode)
	if err != nil {
		a.service().Error("the app gets no answer", slog.Any("error", cantListen(a.config.address, err)))
	} else {
		a.started(listener)
		go func() {
			defer crash.Contain()
			a.service().Error("the agent no longer listens", slog.Any("error", a.server().Serve(listener)))
		}()
	}
	if err := e.await(); err != nil {
		a.service().Error("the extension can't wait for its end, and goes on", slog.Any("error", err))
		for {
			time.Sleep(time.Hour)
		}
	}
	a.flush()
}

// An extension is this process as Lambda's Extensions API sees it.
type extension struct {
	api  string // HOST:PORT
	name string // of its file
}

// await registers the extension, and returns nil at SHUTDOWN. A request that fails is repeated a
// few times: the API is on this machine.
func (e extension) await() error {
	// No proxy of the app, and no timeout: the answer comes at the end, after many freezes.
	client := &http.Client{Transport: &http.Transport{}}
	var id string
	err := persist(func() (err error) {
		id, err = e.register(client)
		return err
	})
	for over := false; err == nil && !over; {
		err = persist(func() (err error) {
			over, err = e.next(client, id)
			return err
		})
	}
	return err
}

// persist calls do until it succeeds, at most six times.
func persist(do func() error) (err error) {
	for failures := range 6 {
		if err = do(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond << failures)
	}
	return err
}

// register returns the id that Lambda gives the extension.
func (e extension) register(client *http.Client) (id string, err error) {
	r, err := e.request(http.MethodPost, "register", `{"events":["SHUTDOWN"]}`)
	if err != nil {
		return "", err
	}
	r.Header.Set("Lambda-Extension-Name", e.name)
	header, _, err := do(client, r)
	return header.Get("Lambda-Extension-Identifier"), err
}

// next waits for the next event, and reports whether it is SHUTDOWN.
func (e extension) next(client *http.Client, id string) (over bool, err error) {
	r, err := e.request(http.MethodGet, "event/next", "")
	if err != nil {
		return false, err
	}
	r.Header.Set("Lambda-Extension-Identifier", id)
	_, body, err := do(client, r)
	if err != nil {
		return false, err
	}
	var event struct {
		EventType string `json:"eventType"`
	}
	err = json.Unmarshal(body, &event)
	return event.EventType == "SHUTDOWN", err
}

func (e extension) request(method, path, body string) (*http.Request, error) {
	return http.NewRequestWithContext(context.Background(), method, "http://"+e.api+"/2020-01-01/extension/"+path, strings.NewReader(body))
}

func do(client *http.Client, r *http.Request) (http.Header, []byte, error) {
	response, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: HTTP %d: %s", r.URL.Path, response.StatusCode, body)
	}
	return response.Header, body, err
}
