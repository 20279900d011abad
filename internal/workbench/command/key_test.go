package command

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards"
	"github.com/cric-talk/guards/internal/testkit"
	app "github.com/cric-talk/guards/limits"
)

// Files of keys that no text archive can hold.
func TestKeyScript(t *testing.T) {
	p := scripts()
	p.Files = []string{"testdata/key.txtar"}
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		for name, content := range map[string]string{
			"secret": "correct horse battery staple", "dos": "correct horse battery staple\r\n", "short": "fifteen bytes..\n",
			"bytes": "\xff\x00345678901234567\n", "fewer": "\xff\x00345678901234567", "latin1": "\xe4nn\n",
		} {
			if err := os.WriteFile(filepath.Join(env.WorkDir, name), []byte(content), 0o600); err != nil {
				return err
			}
		}
		return setup(env)
	}
	testscript.Run(t, p)
}

// The command prints what the clients send: schema/keys.json is for all of them.
func TestKeyPrintsTheVectors(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../../schema/keys.json"))(t)
	var all map[string][]struct {
		Address, Text, KeyHex, Want string
		Key                         *string
		Prefix                      json.Number
		Fold                        *bool
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all["ipKey"]) < 100 || len(all["accountKey"]) < 40 {
		t.Fatalf("%d and %d vectors, %v", len(all["ipKey"]), len(all["accountKey"]), err)
	}
	for kind, vectors := range all {
		for i, v := range vectors {
			if i%testkit.Bound(8, 1) != 0 { // each run builds the whole command line
				continue
			}
			args := []string{"key", "ip"}
			if kind == "accountKey" {
				if strings.ContainsAny(strings.Trim(v.Text, " \t\r\n"), "\r\n") { // several lines
					continue
				}
				args[1] = "account"
			}
			key, err := hex.DecodeString(v.KeyHex)
			if err != nil {
				t.Fatal(err)
			}
			if v.Key != nil {
				key = []byte(*v.Key)
			}
			if v.Key != nil || v.KeyHex != "" {
				args = append(args, "--key-file", fileWith(t, string(key)))
			}
			if v.Prefix != "" {
				args = append(args, "--prefix="+v.Prefix.String())
			}
			if v.Fold != nil && !*v.Fold {
				args = append(args, "--no-fold")
			}
			if kind == "ipKey" {
				args = append(args, "--", v.Address)
			}
			var out, log stream
			status := runWith(t, v.Text+"\n", args, session{page: app.All, out: &out, err: &log})
			if got := strings.TrimSuffix(out.String(), "\n"); got != v.Want || (status == done) != (v.Want != "") {
				t.Errorf("guards %q of %+v: exit status %d, %q, %q", args, v, status, got, &log)
			}
		}
	}
}

// runWith runs a command whose standard input is a text.
func runWith(t *testing.T, text string, args []string, c session) int {
	t.Helper()
	in := testkit.Must(os.Open(fileWith(t, text)))(t)
	stdin := os.Stdin
	os.Stdin = in
	defer func() {
		os.Stdin = stdin
		_ = in.Close()
	}()
	return run(t.Context(), args, c)
}

func fileWith(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	testkit.OK(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// Who blocks a bare IPv6 address is told what the clients send.
func TestBlockOfABareAddress(t *testing.T) {
	credentials(t)
	page := []guards.Guard{{Name: "users-guard", Message: "m", Activities: []guards.Activity{{
		Name: "sign_up", Limit: "5/1h", Subjects: []guards.Subject{{Name: "ip", Limit: "9/1h", Optional: true}, {Name: "room", Limit: "9/1h", Optional: true}},
	}}}}
	for subject, sends := range map[string]string{
		"ip=2001:db8::1":                      "2001:db8::/64",
		"ip=2001:db8::":                       "2001:db8::/64",
		"ip=::ffff:192.0.2.1":                 "192.0.2.1",
		"ip=192.0.2.1:443":                    "192.0.2.1",
		"ip=192.0.2.1":                        "",
		"ip=2001:db8::/64":                    "",
		"ip=d0c6486d9cdb48f02378d41249c8abd7": "",
		"room=2001:db8::1":                    "",
	} {
		var log stream
		args := []string{"block", "--subject", subject, "--until", "7d", "--reason", "r", "--region", "eu-west-1", "--endpoint", "http://127.0.0.1:1"}
		run(t.Context(), args, session{page: page, out: &log, err: &log, now: atPinned})
		_, id, _ := strings.Cut(subject, "=")
		want := "guards: ipKey of the clients sends " + sends + " for this address, so a block of " + id + " stops nobody: see guards key ip --help\n"
		if got := log.String(); strings.Contains(got, "ipKey") != (sends != "") || sends != "" && !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", subject, got, want)
		}
	}
}
