package deployment_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

const account = "000000000000" // the emulator's account

// A recorder is a proxy between the functions and the emulator. It records which
// access key requests which action on which resource, including denied requests.
type recorder struct {
	mu    sync.Mutex
	asked map[string]map[string]bool // by access key and action, such as "dynamodb:UpdateItem on arn:..."
}

// record starts a recorder at the address that the functions send requests to.
func record(t *testing.T) *recorder {
	t.Helper()
	emulator := testkit.Must(url.Parse(os.Getenv("AWS_ENDPOINT_URL")))(t)
	r := &recorder{asked: map[string]map[string]bool{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(emulator)
		p.Out.Host = p.In.Host // the signature includes it
	}, ErrorLog: log.New(io.Discard, "", 0)} // a function that stops waiting is not an error
	listener := testkit.Must((&net.ListenConfig{}).Listen(t.Context(), "tcp", os.Getenv("RECORDER_ADDRESS")))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the function stopped waiting
		}
		r.note(req, body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, req)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return r
}

var credential = regexp.MustCompile(`Credential=(\w+)/`)

// note records the actions of one request.
func (r *recorder) note(req *http.Request, body []byte) {
	key := "nobody"
	if found := credential.FindStringSubmatch(req.Header.Get("Authorization")); found != nil {
		key = found[1]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked[key] == nil {
		r.asked[key] = map[string]bool{}
	}
	for _, action := range actions(req, body) {
		r.asked[key][action] = true
	}
}

// by returns the actions that each access key requested, sorted.
func (r *recorder) by() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string][]string{}
	for key, actions := range r.asked {
		all[key] = slices.Sorted(maps.Keys(actions))
	}
	return all
}

// actions returns the actions that IAM checks for a request. For a batch or a
// transaction, IAM checks each operation in it.
func actions(req *http.Request, body []byte) []string {
	service, operation, ok := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	var in struct {
		TableName, QueueUrl string
		Statements          []struct{ Statement string } // PartiQL
		TransactItems       []map[string]struct{ TableName string }
	}
	if err := json.Unmarshal(body, &in); !ok || err != nil {
		return []string{req.Method + " " + req.URL.Path}
	}
	table := func(operation, name string) string {
		return fmt.Sprintf("dynamodb:%s on arn:aws:dynamodb:us-east-1:%s:table/%s", operation, account, name)
	}
	switch {
	case service == "AmazonSQS":
		return []string{"sqs:" + operation + " on " + queueARN(in.QueueUrl)}
	case operation == "BatchExecuteStatement":
		var all []string
		for _, s := range in.Statements {
			// DELETE FROM "table" WHERE ...
			words := append(strings.Fields(s.Statement), "", "", "")
			all = append(all, table("PartiQL"+words[0][:1]+strings.ToLower(words[0][1:]), strings.Trim(words[2], `"`)))
		}
		return all
	case operation == "TransactWriteItems":
		var all []string
		for _, item := range in.TransactItems {
			for kind, what := range item {
				all = append(all, table(kind+"Item", what.TableName))
			}
		}
		return all
	}
	return []string{table(operation, in.TableName)}
}

func queueARN(url string) string {
	return fmt.Sprintf("arn:aws:sqs:us-east-1:%s:%s", account, path.Base(url))
}

// accessKey returns the access key that MiniStack gives to a function with this
// role.
func accessKey(function, role string) string {
	sum := sha256.Sum256([]byte(function + ":" + role))
	return "ASIA" + strings.ToUpper(hex.EncodeToString(sum[:8]))
}
