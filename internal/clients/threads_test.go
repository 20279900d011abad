package clients_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

const threads = `
import json
import threading

import boto3
from botocore.config import Config

guards = boto3.client("lambda", config=Config(connect_timeout=60, read_timeout=60))
event = json.dumps({"userId": "u1", "activity": "like"})
all = [threading.Thread(target=guards.invoke, kwargs={"FunctionName": "posts-guard", "Payload": event}) for _ in range(20)]
for thread in all:
    thread.start()
for thread in all:
    thread.join()
`

// Twenty threads ask at the same time, although the pool keeps only ten
// connections.
func TestThreadsShareOneBoto3Client(t *testing.T) {
	var waiting atomic.Int64
	together := make(chan bool)
	endpoint := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if waiting.Add(1) == 20 {
			close(together)
		}
		select {
		case <-together:
		case <-r.Context().Done():
		case <-time.After(patience / 4):
			http.Error(w, "the others don't come", http.StatusTeapot)
		}
	})
	if ended := finish(t, install(t, "threads.py", threads).command(t, endpoint)); ended.status != 0 || waiting.Load() != 20 {
		t.Errorf("status %d, %d requests at the same time: %s", ended.status, waiting.Load(), ended.stderr)
	}
}
