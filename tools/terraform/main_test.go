package main

import (
	"os"
	"testing"

	"github.com/cric-talk/guards/internal/testkit"
)

func TestTheVariablesFollowFromTheTemplate(t *testing.T) {
	template := testkit.Must(os.ReadFile("../../template.yaml"))(t)
	want := testkit.Must(parametersFile(template))(t)
	got := testkit.Must(os.ReadFile("../../deploy/terraform/parameters.tf"))(t)
	testkit.Same(t, "deploy/terraform/parameters.tf is out of date: run go generate ./tools/terraform", string(want), string(got))
}
