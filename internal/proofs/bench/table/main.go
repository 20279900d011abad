// Table answers each request of a guard at once, as DynamoDB would for a new
// user. It stores nothing. The benchmarks of CPU use it instead of DynamoDB
// Local, which takes the other core and makes each request wait.
//
// It prints its URL and then serves until it is killed. A PUT with a duration,
// such as 4ms, makes it answer so much later from then on.
package main

import (
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(listener, http.HandlerFunc(answer)))
	os.Exit(1)
}

// counted is the item after the first request of a user. The id is inserted.
const counted = `{"Attributes":{"userId":{"S":"0b5d8e5e-7b5b-4ac9-9f01-000000000001"},"activityWindow":{"S":"create_post#28333333"},` +
	`"activity":{"S":"create_post"},"windowKey":{"N":"28333333"},"createdAt":{"N":"1700000000000"},"expiresAt":{"N":"1700000160"},` +
	`"activityCount":{"N":"1"},"ids":{"BS":["%s"]}}}`

// delay is how late each answer is.
var delay atomic.Int64

func answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	if r.Method == http.MethodPut {
		d, err := time.ParseDuration(string(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
		delay.Store(int64(d))
		return
	}
	time.Sleep(time.Duration(delay.Load()))
	text := "{}"
	if _, after, found := strings.Cut(string(body), `{"BS":["`); found {
		id, _, _ := strings.Cut(after, `"`)
		text = fmt.Sprintf(counted, id)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(text))), 10))
	_, _ = io.WriteString(w, text)
}
