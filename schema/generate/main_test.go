package main

import (
	"os"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestGeneratedDocumentIsUpToDate(t *testing.T) {
	want := testkit.Must(openAPI(".."))(t)
	got := testkit.Must(os.ReadFile("../openapi.json"))(t)
	testkit.Same(t, "openapi.json is out of date: run go generate ./schema", string(want), string(got))
}
