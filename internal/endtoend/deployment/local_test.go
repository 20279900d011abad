//go:build unix

package deployment_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// With KEEP=1, deploy-local goes on after the refused call, until a person presses Ctrl-C. Here, two small programs stand for
// sam and aws. make tour runs deploy-local with the real ones.
func TestDeployLocalKeepsTheStackUntilCtrlC(t *testing.T) {
	programs := t.TempDir()
	for name, script := range map[string]string{
		"sam": "exit 0\n",
		"aws": "[ $1 = cloudformation ] || echo '{\"allowed\":false,\"reason\":\"limited\",\"limit\":5}' >\"${!#}\"\n", // into its last argument
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/usr/bin/env bash\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for keep, last := range map[string]string{"": "The emulator stops now.", "1": "export AWS_ENDPOINT_URL="} {
		cmd := exec.CommandContext(t.Context(), "bash", "scripts/deploy-local")
		cmd.Dir = "../../.."
		cmd.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "AWS_ENDPOINT_URL=http://127.0.0.1:1", "KEEP="+keep)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C goes to the script and to what it waits for
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), last) {
		}
		if !strings.HasPrefix(lines.Text(), last) {
			t.Errorf("KEEP=%q: the script ended without the line %s", keep, last)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if keep == "" {
			if err := <-ended; err != nil {
				t.Errorf("without KEEP: %v, want the script to end by itself", err)
			}
			continue
		}
		select {
		case err := <-ended:
			t.Errorf("KEEP=1: the script ended by itself, %v", err)
		case <-time.After(time.Second):
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
				t.Error(err)
			}
			t.Logf("after SIGINT: %v", <-ended)
		}
	}
}
