package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheVariablesFollowFromTheTemplate(t *testing.T) {
	template, err := os.ReadFile("../../template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := parametersFile(template)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../deploy/terraform/parameters.tf")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("deploy/terraform/parameters.tf is out of date: run go generate ./tools/terraform (-want +got):\n%s", diff)
	}
}
