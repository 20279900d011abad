package command

import "embed"

// completionCommand prints a script for a shell. The script runs
// completeCommand each time the user presses the completion key.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
	JSON  bool   `name:"json" help:"Print the script in one JSON document."`
}

// Help returns the text below the command's flags.
func (completionCommand) Help() string {
	return `The shell must find a program named guards: go install ./cmd/guards.
Put one of these lines into your shell's start-up file:
  eval "$(guards completion bash)"   in ~/.bashrc
  eval "$(guards completion zsh)"    in ~/.zshrc, after compinit
  guards completion fish | source    in ~/.config/fish/config.fish`
}

//go:embed completion
var shells embed.FS

// Run prints the script.
func (c *completionCommand) Run(con console) error {
	script, err := shells.ReadFile("completion/guards." + c.Shell)
	if err != nil {
		return err
	}
	if c.JSON {
		return con.printLine(map[string]string{"shell": c.Shell, "script": string(script)})
	}
	_, err = con.out.Write(script)
	return err
}
