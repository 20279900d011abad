package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cric-talk/guards"
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
		_, _, log := command(t, page, "block --subject "+subject+" --until 7d --reason r --region eu-west-1 --endpoint http://127.0.0.1:1")
		_, id, _ := strings.Cut(subject, "=")
		want := "guards: ipKey of the clients sends " + sends + " for this address, so a block of " + id + " stops nobody: see guards key ip --help\n"
		if strings.Contains(log, "ipKey") != (sends != "") || sends != "" && !strings.HasPrefix(log, want) {
			t.Errorf("%s: %q, want %q", subject, log, want)
		}
	}
}
