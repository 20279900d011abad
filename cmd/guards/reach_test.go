package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A network answers a request as a test demands.
type network func(*http.Request) (*http.Response, error)

func (n network) Do(r *http.Request) (*http.Response, error) { return n(r) }

// People learn within 3 s that nothing answers at an address, and the SDK does
// not try again. After the first answer, failures are left to the SDK.
func TestSilentAddressesAreReported(t *testing.T) {
	silent := true
	c := &reacher{wait: firstWait, client: network(func(r *http.Request) (*http.Response, error) {
		if silent {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return &http.Response{Body: http.NoBody}, nil
	})}
	send := func(t *testing.T, within time.Duration) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://10.1.2.3:8000/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := send(t, time.Hour)
		e, ok := errors.AsType[*unreached](err)
		if took := time.Since(began); !ok || took > 3*time.Second || e.RetryableError() || !strings.HasPrefix(e.Error(), "http://10.1.2.3:8000 can't be reached: no answer in ") {
			t.Errorf("after %v: %v", took, err)
		}
		if err := send(t, time.Second); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*unreached)) {
			t.Errorf("the caller stopped waiting: %v", err)
		}
		silent = false
		if err := send(t, time.Hour); err != nil {
			t.Errorf("an address that answers: %v", err)
		}
		silent = true
		if err := send(t, time.Minute); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, new(*unreached)) {
			t.Errorf("silent after an answer: %v", err)
		}
	})
}
