//go:build unix

package deployment_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cric-talk/guards/internal/testkit"
)

// With KEEP=1, deploy-local goes on after the refused call, until a person presses Ctrl-C. Here, two small programs stand for
// sam and aws. make tour runs deploy-local with the real ones.
func TestDeployLocalKeepsTheStackUntilCtrlC(t *testing.T) {
	programs := t.TempDir()
	for name, script := range map[string]string{
		"sam": "exit 0\n",
		"aws": "[ $1 = cloudformation ] || echo '{\"allowed\":false,\"reason\":\"limited\",\"limit\":5}' >\"${!#}\"\n", // into its last argument
	} {
		testkit.OK(t, os.WriteFile(filepath.Join(programs, name), []byte("#!/usr/bin/env bash\n"+script), 0o700))
	}
	for keep, last := range map[string]string{"": "The emulator stops now.", "1": "export AWS_ENDPOINT_URL="} {
		ctx, interrupt := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, "bash", "scripts/deploy-local")
		cmd.Dir = "../../.."
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "AWS_ENDPOINT_URL=http://127.0.0.1:1", "KEEP="+keep)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C goes to the script and to what it waits for
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
		out := testkit.Must(cmd.StdoutPipe())(t)
		testkit.OK(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), last) {
		}
		line := lines.Text()
		time.AfterFunc(time.Second, interrupt)
		err := cmd.Wait()
		if interrupted := ctx.Err() != nil; !strings.HasPrefix(line, last) || interrupted != (keep == "1") || err != nil && !interrupted {
			t.Errorf("KEEP=%q: the script ended with %v after the line %q, interrupted: %v", keep, err, line, interrupted)
		}
		interrupt()
	}
}
