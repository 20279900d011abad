package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/limits"
)

// completionCommand prints what a shell runs to complete a command line: it
// asks completeCommand at each press of the key.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the command's own help.
func (completionCommand) Help() string {
	return `It is for a program called guards that the shell finds: go install ./cmd/guards.
What to put where:
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
	_, err = con.out.Write(script)
	return err
}

// completeCommand prints what may stand in place of the last word, each on a
// line with its help behind a tab.
type completeCommand struct {
	Words []string `arg:"" optional:""` // of a command line that is being typed, without the program's name
}

// Run prints them.
func (c *completeCommand) Run(con console, k *kong.Context) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	typed := words[len(words)-1]
	at := place{node: k.Model.Node}
	for _, word := range words[:len(words)-1] {
		at.pass(word)
	}
	for _, candidate := range at.candidates(typed) {
		if strings.HasPrefix(candidate[0], typed) {
			if _, err := fmt.Fprintf(con.out, "%s\t%s\n", candidate[0], candidate[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// A place is where in a command line the next word stands.
type place struct {
	node  *kong.Node
	value *kong.Value // of the flag before it; nil: it begins something new
	given []*kong.Flag
	args  int // positional arguments so far
}

// pass goes over one word.
func (p *place) pass(word string) {
	name, _, glued := strings.Cut(word, "=")
	switch flag := p.flag(name); {
	case p.value != nil:
		p.value = nil
	case flag != nil:
		p.given = append(p.given, flag)
		if !glued && !flag.IsBool() {
			p.value = flag.Value
		}
	case strings.HasPrefix(word, "-"): // unknown
	default:
		for _, child := range p.node.Children {
			if child.Name == word {
				p.node = child
				return
			}
		}
		p.args++
	}
}

// flags are those that may stand there, with what runs where no subcommand is
// named.
func (p *place) flags() []*kong.Flag {
	all := slices.Concat(p.node.AllFlags(true)...)
	if p.node.DefaultCmd != nil {
		all = append(all, p.node.DefaultCmd.Flags...)
	}
	return all
}

func (p *place) flag(word string) *kong.Flag {
	for _, flag := range p.flags() {
		if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// candidates are the words that may stand there, with their help.
func (p *place) candidates(typed string) (all [][2]string) {
	if p.value != nil {
		return values(p.value, "")
	}
	if name, _, glued := strings.Cut(typed, "="); glued {
		if flag := p.flag(name); flag != nil && !flag.IsBool() {
			return values(flag.Value, name+"=")
		}
	}
	for _, child := range p.node.Children {
		if !child.Hidden {
			all = append(all, [2]string{child.Name, child.Help})
		}
	}
	if p.args < len(p.node.Positional) {
		all = append(all, values(p.node.Positional[p.args], "")...)
	}
	if len(all) > 0 && !strings.HasPrefix(typed, "-") {
		return all
	}
	for _, flag := range p.flags() {
		if flag.IsCumulative() || !slices.Contains(p.given, flag) {
			all = append(all, [2]string{"--" + flag.Name, flag.Help})
		}
	}
	return all
}

// values are those that a flag or argument takes, as far as they are known.
func values(v *kong.Value, prefix string) (all [][2]string) {
	add := func(value, help string) { all = append(all, [2]string{prefix + value, help}) }
	for _, g := range limits.All {
		for _, a := range g.Activities {
			if v.Name == "activity" {
				add(a.Name, g.Name)
			}
		}
		if v.Name == "function" {
			add(g.Name, "")
		}
	}
	if v.Enum != "" {
		for value := range strings.SplitSeq(v.Enum, ",") {
			add(value, "")
		}
	}
	return all
}
