package command

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/cric-talk/guards/internal/limits"
	"github.com/cric-talk/guards/internal/live"
)

// completionCommand prints a script for a shell. The script runs
// completeCommand each time the user presses the completion key.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
	JSON  bool   `name:"json" help:"Print the script in one JSON document."`
}

func (completionCommand) Help() string {
	return `The shell must find a program named guards: go install ./cmd/guards.
Put one of these lines into your shell's start-up file:
  eval "$(guards completion bash)"   in ~/.bashrc
  eval "$(guards completion zsh)"    in ~/.zshrc, after compinit
  guards completion fish | source    in ~/.config/fish/config.fish`
}

//go:embed completion
var shells embed.FS

func (c *completionCommand) Run(env session) error {
	script, err := shells.ReadFile("completion/guards." + c.Shell)
	if err != nil {
		return err
	}
	if c.JSON {
		return env.printLine(map[string]string{"shell": c.Shell, "script": string(script)})
	}
	_, err = env.out.Write(script)
	return err
}

// completeCommand prints the words that can replace the last word of a command
// line. Each is on a line of its own, followed by a tab and its help.
type completeCommand struct {
	Words []string `arg:"" optional:""` // the command line so far, without the program's name
}

// Run prints the words.
func (c *completeCommand) Run(env session, k *kong.Context) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	typed := words[len(words)-1]
	at := place{guards: env.guards, node: k.Model.Node}
	for _, word := range words[:len(words)-1] {
		at.pass(word)
	}
	for _, candidate := range at.candidates(typed) {
		if strings.HasPrefix(candidate[0], typed) {
			if _, err := fmt.Fprintf(env.out, "%s\t%s\n", candidate[0], candidate[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// A place is a position in a command line, before a word.
type place struct {
	guards limits.Guards
	node   *kong.Node
	value  *kong.Value  // what the word is a value for, if a flag precedes it; else nil
	given  []*kong.Flag // the flags so far
	args   []string     // the positional arguments so far
}

// pass moves the place behind one word.
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
		p.args = append(p.args, word)
	}
}

// flags returns the flags that can follow. They include the flags of the
// default subcommand, which runs if no subcommand is named.
func (p *place) flags() []*kong.Flag {
	all := slices.Concat(p.node.AllFlags(true)...)
	if p.node.DefaultCmd != nil {
		all = append(all, p.node.DefaultCmd.Flags...)
	}
	return all
}

// flag returns the flag with this name, or nil.
func (p *place) flag(word string) *kong.Flag {
	for _, flag := range p.flags() {
		if word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

// candidates returns the words that can follow, each with its help.
func (p *place) candidates(typed string) (all [][2]string) {
	if p.value != nil {
		return p.values(p.value, "")
	}
	if name, _, glued := strings.Cut(typed, "="); glued {
		if flag := p.flag(name); flag != nil && !flag.IsBool() {
			return p.values(flag.Value, name+"=")
		}
	}
	for _, child := range p.node.Children {
		if !child.Hidden {
			all = append(all, [2]string{child.Name, child.Help})
		}
	}
	if len(p.args) < len(p.node.Positional) {
		all = append(all, p.values(p.node.Positional[len(p.args)], "")...)
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

// values returns the known values of a flag or an argument.
func (p *place) values(v *kong.Value, prefix string) (all [][2]string) {
	add := func(value, help string) { all = append(all, [2]string{prefix + value, help}) }
	ofLimits := p.node.Parent != nil && p.node.Parent.Name == "limits" // whose --subject takes a name without an id
	var names []string
	switch v.Name {
	case "activity":
		if ofLimits && slices.ContainsFunc(p.given, func(f *kong.Flag) bool { return f.Name == "group" }) {
			names = groupNames(p.guards, false) // behind --group, the argument is the name of a limit
			break
		}
		for g, a := range p.guards.All {
			add(a.Name, g.Name)
		}
	case "function", "guard":
		for _, g := range p.guards {
			names = append(names, g.Name)
		}
	case "group":
		names = groupNames(p.guards, true)
	case "mode":
		names = live.Modes
	case "tier":
		names = p.tiers()
	case "subject":
		names = subjectNames(p.guards)
	default:
		if v.Enum != "" {
			names = strings.Split(v.Enum, ",")
		}
	}
	for _, name := range names {
		if v.Name == "tier" && v.IsMap() || v.Name == "subject" && !ofLimits {
			name += "=" // a limit or an id follows
		}
		add(name, "")
	}
	return all
}

// tiers returns the tiers of the activity in the command line, or of all activities if it has
// none.
func (p *place) tiers() []string {
	var of, all []string
	for _, a := range p.guards.All {
		for _, part := range a.Parts() {
			all = slices.AppendSeq(all, maps.Keys(part.Tiers))
			if slices.Contains(p.args, a.Name) {
				of = slices.AppendSeq(of, maps.Keys(part.Tiers))
			}
		}
	}
	if len(of) == 0 {
		of = all
	}
	slices.Sort(of)
	return slices.Compact(of)
}
