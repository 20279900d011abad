package clients_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/cric-talk/guards/internal/testkit"
)

// A fields is a JSON or YAML object.
type fields = map[string]any

// inside returns the object at a path such as requestContext.identity.
func inside(o fields, path string) fields {
	for name := range strings.SplitSeq(path, ".") {
		o, _ = o[name].(fields)
	}
	return o
}

// A caller is what an authorizer sees of the sender of a POST to /posts.
type caller struct{ token, key, address string }

// A gateway is an API of API Gateway that has the authorizer.
type gateway struct {
	name    string // in the template
	unknown int    // the status for a caller without a valid token
	refused int    // the status above the limit
	event   func(t testing.TB, c caller) fields
	answer  func(t testing.TB, o handlerOutcome, template fields) testkit.Response
}

var (
	restGateway = gateway{"RestApi", http.StatusUnauthorized, http.StatusTooManyRequests, restEvent, restAnswer}
	httpGateway = gateway{"HttpApi", http.StatusForbidden, http.StatusForbidden, httpEvent, httpAnswer}
)

// restEvent returns AWS's sample event of a REST API, with the caller and the route of the example.
func restEvent(t testing.TB, c caller) fields {
	t.Helper()
	e := sampleEvent(t, "authorizer-rest.json")
	e["httpMethod"], e["resource"], e["path"] = http.MethodPost, "/posts", "/posts"
	e["methodArn"] = strings.Replace(e["methodArn"].(string), "GET/request", "POST/posts", 1)
	identity := inside(e, "requestContext.identity")
	identity["sourceIp"], identity["apiKey"] = c.address, c.key
	if c.key == "" {
		identity["apiKey"] = nil
	}
	if c.token != "" {
		inside(e, "headers")["Authorization"] = "Bearer " + c.token
	}
	return e
}

// httpEvent returns AWS's sample event of an HTTP API, with the caller and the route of the example.
func httpEvent(t testing.TB, c caller) fields {
	t.Helper()
	e := sampleEvent(t, "authorizer-http.json")
	e["routeKey"], inside(e, "requestContext")["routeKey"] = "POST /posts", "POST /posts"
	inside(e, "requestContext.http")["sourceIp"] = c.address
	if c.token != "" {
		inside(e, "headers")["authorization"] = "Bearer " + c.token
	}
	return e
}

func sampleEvent(t testing.TB, name string) (e fields) {
	t.Helper()
	testkit.OK(t, json.Unmarshal(testkit.Must(os.ReadFile(filepath.Join("testdata", name)))(t), &e))
	return e
}

// An authorizer is the example's function with some settings.
type authorizer struct {
	app      program
	template fields
}

// newAuthorizer prepares the example. The settings are variables such as LIMIT_BY=address.
func newAuthorizer(t testing.TB, endpoint string, settings ...string) authorizer {
	t.Helper()
	a := authorizer{app: driven(t, "authorizer.mjs", text(t, "examples", "authorizer", "authorizer.mjs"))}
	a.app.env = append([]string{"AWS_ENDPOINT_URL_LAMBDA=" + endpoint}, settings...)
	testkit.OK(t, yaml.Unmarshal([]byte(text(t, "examples", "authorizer", "template.yaml")), &a.template))
	return a
}

// answers returns what API Gateway answers to calls of POST /posts, in this order.
func (a authorizer) answers(t testing.TB, on gateway, callers ...caller) (all []testkit.Response) {
	t.Helper()
	var events bytes.Buffer
	for _, c := range callers {
		testkit.OK(t, json.NewEncoder(&events).Encode(on.event(t, c)))
	}
	cmd := a.app.command(t, "")
	cmd.Env = append(without(cmd.Env, "AWS_ENDPOINT_URL_LAMBDA"), a.app.env...)
	cmd.Stdin = &events
	for _, o := range outcomesOf(t, cmd, len(callers)) {
		all = append(all, on.answer(t, o, a.template))
	}
	return all
}

// respond returns a response without headers.
func respond(status int, text string) testkit.Response {
	return testkit.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}}, Text: text}
}

// restAnswer does what AWS documents of a REST API. The error Unauthorized is 401, and any other error 500. What a policy
// denies gets the gateway response of the template. What it allows reaches the backend, which answers with the caller's id.
func restAnswer(t testing.TB, o handlerOutcome, template fields) testkit.Response {
	t.Helper()
	if o.ErrorMessage == "Unauthorized" {
		return respond(http.StatusUnauthorized, o.ErrorMessage)
	}
	if o.ErrorType != "" {
		return respond(http.StatusInternalServerError, o.ErrorMessage)
	}
	var result struct {
		PrincipalID    string
		PolicyDocument struct {
			Version   string
			Statement []struct{ Action, Effect, Resource string }
		}
		Context map[string]string // API Gateway takes no objects
	}
	err := json.Unmarshal(o.Result, &result)
	statements := result.PolicyDocument.Statement
	if err != nil || result.PrincipalID == "" || result.PolicyDocument.Version != "2012-10-17" || len(statements) != 1 ||
		statements[0].Action != "execute-api:Invoke" || statements[0].Resource != "arn:aws:execute-api:us-east-1:123456789012:abcdef123/test/*" {
		t.Fatalf("%s is no policy about the stage of the method: %v", o.Result, err)
	}
	if statements[0].Effect == "Allow" {
		return respond(http.StatusCreated, result.Context["userId"])
	}
	denied := inside(template, "Resources.RestApi.Properties.GatewayResponses.ACCESS_DENIED")
	fill := func(text any) string {
		return ofContext.ReplaceAllStringFunc(text.(string), func(name string) string {
			return result.Context[ofContext.FindStringSubmatch(name)[1]]
		})
	}
	response := respond(int(denied["StatusCode"].(uint64)), fill(inside(denied, "ResponseTemplates")["application/json"]))
	for name, text := range inside(denied, "ResponseParameters.Headers") {
		response.Header.Set(name, fill(text))
	}
	return response
}

var ofContext = regexp.MustCompile(`\$?context\.authorizer\.(\w+)`)

// httpAnswer does what AWS documents of an HTTP API with simple responses: an error is 500, and a false isAuthorized 403.
func httpAnswer(t testing.TB, o handlerOutcome, _ fields) testkit.Response {
	t.Helper()
	if o.ErrorType != "" {
		return respond(http.StatusInternalServerError, o.ErrorMessage)
	}
	var result struct {
		IsAuthorized *bool
		Context      struct{ UserID string }
	}
	if err := json.Unmarshal(o.Result, &result); err != nil || result.IsAuthorized == nil {
		t.Fatalf("%s is no simple response: %v", o.Result, err)
	}
	if *result.IsAuthorized {
		return respond(http.StatusCreated, result.Context.UserID)
	}
	return respond(http.StatusForbidden, "")
}

// An issuer signs tokens, and publishes its keys.
type issuer struct {
	url, certificate string
	key              *rsa.PrivateKey
}

func newIssuer(t testing.TB) issuer {
	t.Helper()
	key := testkit.Must(rsa.GenerateKey(rand.Reader, 2048))(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/.well-known/jwks.json" {
			http.NotFound(w, r)
			return
		}
		n, e := encode(key.N.Bytes()), encode(big.NewInt(int64(key.E)).Bytes())
		_ = json.NewEncoder(w).Encode(fields{"keys": []fields{{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": n, "e": e}}})
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "issuer.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	testkit.OK(t, os.WriteFile(file, block, 0o600))
	return issuer{server.URL, file, key}
}

// settings returns the variables of an authorizer that believes the issuer.
func (i issuer) settings() []string {
	return []string{"LIMIT_BY=token", "ISSUER=" + i.url, "AUDIENCE=app", "NODE_EXTRA_CA_CERTS=" + i.certificate}
}

// token returns a token with changes in its header and its claims. Without changes it is valid.
func (i issuer) token(t testing.TB, user string, changes fields) string {
	t.Helper()
	header := fields{"alg": "RS256", "kid": "1"}
	claims := fields{"iss": i.url, "aud": "app", "sub": user, "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range changes {
		if _, ok := header[name]; ok {
			header[name] = value
		} else {
			claims[name] = value
		}
	}
	text := encode(testkit.Must(json.Marshal(header))(t)) + "." + encode(testkit.Must(json.Marshal(claims))(t))
	sum := sha256.Sum256([]byte(text))
	signature := testkit.Must(rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, sum[:]))(t)
	return text + "." + encode(signature)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
