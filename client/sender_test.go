package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/cric-talk/guards/client"
	"github.com/cric-talk/guards/internal/testkit"
)

// sdk returns a Lambda client for an endpoint.
func sdk(endpoint string, own lambda.HTTPClient) *lambda.Client {
	return lambda.New(lambda.Options{Region: urlRegion, Credentials: anyKeys, BaseEndpoint: aws.String(endpoint), HTTPClient: own})
}

// bothWays calls test with a client that asks posts-guard at an address by Invoke, and with
// one that asks it by its Function URL.
func bothWays(t *testing.T, address string, own lambda.HTTPClient, test func(t *testing.T, g *client.Guards)) {
	t.Helper()
	for name, urls := range map[string]map[string]string{"by Invoke": nil, "by URL": {"posts-guard": address + "/posts-guard"}} {
		t.Run(name, func(t *testing.T) {
			test(t, open(t, client.Options{
				Activities: activities, Client: sdk(address, own), URLs: urls,
				Timeout: 20 * time.Second, DecisionTimeout: 5 * time.Second, MaxTries: 2,
			}))
		})
	}
}

// checks sends a check, and returns the kind of its error, or of the outage that let it pass.
func checks(t *testing.T, g *client.Guards) (why string, kind error) {
	t.Helper()
	d, err := g.Check(t.Context(), "create_post", u1)
	if err == nil {
		err = d.Outage
	}
	return fmt.Sprint(err), kindOf(err)
}

const ssh = "SSH-2.0-OpenSSH_9.6\r\n"

var inHTTP = testkit.Replies("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + fmt.Sprint(len(okBody)) + "\r\n\r\n" + okBody)

func TestAServerThatSpeaksNoHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		speaks func(net.Conn)
		never  error // what it is if the address has never spoken HTTP
	}{
		"SSH":                     {testkit.SpeaksFirst(ssh), client.ErrConfiguration},
		"Redis":                   {testkit.Replies("-ERR unknown command 'POST'\r\n"), client.ErrConfiguration},
		"TLS":                     {testkit.Replies("\x15\x03\x01\x00\x02\x02\x46"), client.ErrConfiguration},
		"a header without a name": {testkit.Replies("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n"), client.ErrConfiguration},
		"closes at once":          {func(net.Conn) {}, client.ErrOutage},
		"closes":                  {testkit.Replies(""), client.ErrOutage},
		"an answer broke off":     {testkit.Replies("HTTP/1.1 2"), client.ErrConfiguration}, // it is not known what it was to be
		"a body broke off":        {testkit.Replies("HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"), client.ErrOutage},
	} {
		t.Run(name, func(t *testing.T) {
			p := testkit.OpenPort(t)
			client.Forget("http://" + p.Addr())
			p.Speak(tt.speaks)
			bothWays(t, "http://"+p.Addr(), nil, func(t *testing.T, g *client.Guards) {
				if why, kind := checks(t, g); !errors.Is(kind, tt.never) {
					t.Errorf("before: %s", why)
				}
			})
			p.Speak(inHTTP)
			bothWays(t, "http://"+p.Addr(), nil, func(t *testing.T, g *client.Guards) {
				if why, kind := checks(t, g); kind != nil {
					t.Errorf("in HTTP: %s", why)
				}
				p.Speak(tt.speaks)
				if why, kind := checks(t, g); !errors.Is(kind, client.ErrOutage) {
					t.Errorf("afterwards: %s", why)
				}
				p.Speak(inHTTP)
			})
		})
	}
}

// With https, the address must also speak TLS.
func TestAServerThatSpeaksNoTLS(t *testing.T) {
	for name, speaks := range map[string]func(net.Conn){"SSH": testkit.SpeaksFirst(ssh), "HTTP": func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
	}} {
		t.Run(name, func(t *testing.T) {
			p := testkit.OpenPort(t)
			client.Forget("https://" + p.Addr())
			p.Speak(speaks)
			bothWays(t, "https://"+p.Addr(), nil, func(t *testing.T, g *client.Guards) {
				if why, kind := checks(t, g); !errors.Is(kind, client.ErrConfiguration) {
					t.Error(why)
				}
			})
		})
	}
}

// A proxy can refuse to make a connection. If it made one before, it will again.
func TestAProxyThatRefuses(t *testing.T) {
	guard := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, okBody)
	}))
	defer guard.Close()
	client.Forget(guard.URL)
	var refuses atomic.Bool
	refuses.Store(true)
	proxy := testkit.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if refuses.Load() {
			http.Error(w, "Blocked", http.StatusForbidden)
			return
		}
		tunnel(w, r.Host)
	})
	address, _ := url.Parse(proxy.URL)
	own := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(address), TLSClientConfig: &tls.Config{RootCAs: guard.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
	}}
	for _, want := range []error{client.ErrConfiguration, nil, client.ErrOutage} {
		bothWays(t, guard.URL, own, func(t *testing.T, g *client.Guards) {
			if why, kind := checks(t, g); !errors.Is(kind, want) || want != nil && !strings.Contains(why, "the proxy refused: Forbidden") {
				t.Errorf("%s, want %v", why, want)
			}
		})
		refuses.Store(!refuses.Load())
	}
}

// tunnel connects the other side of w with a host.
func tunnel(w http.ResponseWriter, host string) {
	to, err := net.Dial("tcp", host)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = from.Close() }()
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}()
	_, _ = io.Copy(from, to)
}

// Not every error of a connection is an outage: a wrong port never passes by itself.
func TestAPortThatDoesNotExist(t *testing.T) {
	bothWays(t, "http://127.0.0.1:99999", nil, func(t *testing.T, g *client.Guards) {
		if why, kind := checks(t, g); !errors.Is(kind, client.ErrConfiguration) || !strings.Contains(why, "invalid port") {
			t.Error(why)
		}
	})
}

// doer is an HTTP client that is not net/http's.
type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// No HTTP client takes the user's id to another address, or believes what that one answers.
func TestNoRedirectIsFollowed(t *testing.T) {
	var asked, told atomic.Bool // whether the other address got a request, and one with a body
	other := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked.Store(true)
		told.Store(told.Load() || len(body) > 0)
		_, _ = io.WriteString(w, okBody)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(other))
	defer elsewhere.Close()
	for kind, own := range map[string]lambda.HTTPClient{"the SDK's": nil, "net/http's": &http.Client{}, "another": doer(new(http.Client).Do)} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			for _, to := range []string{elsewhere.URL, "/other"} {
				t.Run(fmt.Sprint(kind, " ", status), func(t *testing.T) {
					mux := http.NewServeMux()
					mux.Handle("/", http.RedirectHandler(to, status))
					mux.HandleFunc("/other", other)
					server := httptest.NewServer(mux)
					defer server.Close()
					bothWays(t, server.URL, own, func(t *testing.T, g *client.Guards) {
						asked.Store(false)
						if why, kind := checks(t, g); !errors.Is(kind, client.ErrConfiguration) || told.Load() {
							t.Errorf("%s; %s was told the user: %v", why, to, told.Load())
						}
						if asked.Load() && kind != "another" { // of such a client, only the answer can be ignored
							t.Errorf("%s was asked", to)
						}
					})
				})
			}
		}
	}
}

// The client reads 64 KiB at most, also of an error.
func TestAnAnswerWithoutEnd(t *testing.T) {
	for status, want := range map[int]error{200: client.ErrAnswer, 403: client.ErrConfiguration, 503: client.ErrOutage} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			sent := make(chan int64, 2)
			server := testkit.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				n, _ := io.Copy(w, io.LimitReader(blanks{}, 64<<20))
				sent <- n
			})
			bothWays(t, server.URL, nil, func(t *testing.T, g *client.Guards) {
				if why, kind := checks(t, g); !errors.Is(kind, want) {
					t.Error(why)
				}
				if n := <-sent; n > 32<<20 { // most of it stays in the buffers of the two sockets
					t.Errorf("the client takes %d bytes", n)
				}
			})
		})
	}
}

// blanks begins with an answer.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	copy(p, okBody+strings.Repeat(" ", max(0, len(p)-len(okBody))))
	return len(p), nil
}

// A failure of the app's own context is no outage, even if the server speaks no HTTP.
func TestTheCallersOwnEndIsNoOutage(t *testing.T) {
	p := testkit.OpenPort(t)
	p.Speak(testkit.Silent)
	bothWays(t, "http://"+p.Addr(), nil, func(t *testing.T, g *client.Guards) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if d, err := g.Check(ctx, "create_post", u1); !errors.Is(err, context.Canceled) || d.Allowed {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// A backend in a VPC without a way to Lambda looks like an outage of all guards. If
// nothing has ever answered the client, its warning mentions that. The decision does
// not.
func TestAWarningSaysThatNothingHasEverAnswered(t *testing.T) {
	const gone, hint = "http://127.0.0.1:1", "Lambda has not answered this client since it started: check the network. In a VPC, "
	var silent atomic.Bool
	server := testkit.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if silent.Load() {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusBadRequest)
	})
	for _, tt := range []struct {
		name, address string
		never         bool
	}{{"no answer", gone, true}, {"an answer of any kind", server.URL, false}} {
		t.Run(tt.name, func(t *testing.T) {
			var warnings []error
			g := open(t, client.Options{
				Activities: activities, Client: sdk(tt.address, nil), MaxTries: 1, Timeout: 20 * time.Second, DecisionTimeout: 5 * time.Second,
				Warn: func(err error) { warnings = append(warnings, err) },
			})
			if !tt.never { // a mistake, but an answer
				if _, kind := checks(t, g); !errors.Is(kind, client.ErrConfiguration) {
					t.Fatalf("status 400 is %v, want a mistake", kind)
				}
				silent.Store(true)
			}
			why, kind := checks(t, g)
			if !errors.Is(kind, client.ErrOutage) || strings.Contains(why, "VPC") || len(warnings) != 1 {
				t.Fatalf("%s, with the warnings %v, want an outage and one warning", why, warnings)
			}
			if got := strings.Contains(warnings[0].Error(), hint); got != tt.never || !strings.HasPrefix(warnings[0].Error(), why) {
				t.Errorf("the warning is %v", warnings[0])
			}
		})
	}
}
