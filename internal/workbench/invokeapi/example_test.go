package invokeapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/cric-talk/guards/internal/workbench/invokeapi"
)

// Any AWS SDK can call this server, if its Lambda endpoint is the server's URL.
func Example() {
	type event struct{ UserID string }
	hello := lambda.NewHandler(func(_ context.Context, e event) (string, error) {
		return "hello " + e.UserID, nil
	})
	server := httptest.NewServer(&invokeapi.Server{Functions: map[string]invokeapi.Function{
		"hello-guard": {Handler: hello, Timeout: time.Second},
	}})
	defer server.Close()

	for _, function := range []string{"hello-guard", "pots-guard"} {
		url := server.URL + "/2015-03-31/functions/" + function + "/invocations"
		response, err := http.Post(url, "application/json", strings.NewReader(`{"userId": "u1"}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		fmt.Println(response.StatusCode, string(body), err)
	}
	// Output:
	// 200 "hello u1" <nil>
	// 404 {"Type":"User","Message":"Function not found: arn:aws:lambda:us-east-1:123456789012:function:pots-guard; the functions are hello-guard"} <nil>
}
