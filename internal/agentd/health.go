package agentd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// health asks the agent at the configured address whether it can decide. The error says why
// not.
func health(ctx context.Context) error {
	c, err := readConfig()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, c.address.network, c.address.at)
		},
	}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/health", http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("no agent answers on %s: %w", c.address, errors.Unwrap(err))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	switch {
	case err != nil:
		return err
	case response.Header.Get(Mark) == "":
		return fmt.Errorf("another program answers on %s", c.address)
	case response.StatusCode != http.StatusOK:
		var problem struct{ Detail string }
		_ = json.Unmarshal(body, &problem) // without a detail, the status is all there is
		return fmt.Errorf("the agent answers %d: %s", response.StatusCode, problem.Detail)
	}
	return nil
}
