package deployment_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit/lambdatest"
	"github.com/cric-talk/guards/internal/workbench/scaffold"
)

// A project whose page is JSON is deployed without a build. Its functions are programs that exist, and read the page beside them.
func TestAProjectWithoutGoIsDeployed(t *testing.T) {
	if os.Getenv("RECORDER_ADDRESS") == "" {
		t.Skip("make deployment runs this test on an emulator")
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &stack{cfg: cfg, recorder: record(t)}
	r := scaffold.Request{Guard: "photos-guard", New: true, Activity: guards.Activity{Name: "upload_photo", Limit: "log 5/1h"}}
	_, changes, err := scaffold.InitPage("my-guards", r, scaffold.Origin{Version: "v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := scaffold.Create(dir, changes); err != nil {
		t.Fatal(err)
	}
	for folder, program := range map[string]string{"guard": "guard", "cleanup": "cleanup", "agent-arm64/extensions": "guards-agent", "agent-amd64/extensions": "guards-agent"} {
		built, err := os.ReadFile(lambdatest.Build(t, "./cmd/generic/"+program))
		if err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{"bootstrap": built, "limits.json": []byte(changes[0].After)}
		if program == "guards-agent" {
			files = map[string][]byte{program: built} // the folder extensions has no other file
		}
		for file, content := range files {
			if err := os.MkdirAll(filepath.Join(dir, "dist", folder), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "dist", folder, file), content, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := filepath.Join(dir, "none.toml") // samconfig.toml is for AWS
	if err := os.WriteFile(none, []byte("version = 0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "sam", "deploy", "--config-file", none, "--template-file", filepath.Join(dir, "template.yaml"), "--stack-name", "my-guards",
		"--s3-bucket", "artifacts", "--capabilities", "CAPABILITY_IAM", "--no-confirm-changeset", "--no-progressbar",
		"--parameter-overrides", "NamePrefix=my-", "TableName=my-table", "DecisionTimeout=5s")
	for n := range 6 {
		a := s.invoke(t, "my-photos-guard", `{"userId": "`+user+`page", "activity": "upload_photo"}`)
		if a.Allowed != (n < 5) || a.Limit != 5 || a.Reason == "unavailable" {
			t.Errorf("%d: %+v", n, a)
		}
	}
}
