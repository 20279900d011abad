package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestGeneratedDocumentIsUpToDate(t *testing.T) {
	want := testkit.Must(openAPI(".."))(t)
	got := testkit.Must(os.ReadFile("../openapi.json"))(t)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("openapi.json is out of date: run go generate ./schema (-want +got):\n%s", diff)
	}
}
