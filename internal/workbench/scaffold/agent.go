package scaffold

import (
	"errors"
	"fmt"
	"go/format"
	"io/fs"
)

// agentFile is the program that a project's apps can have beside them. It is the same for all
// guards, so a project of an older version only lacks it.
const agentFile = "cmd/guards-agent/main.go"

const agentText = `// Guards-agent answers for the guards beside an app, on the same machine.
package main

import (
	"%s/agent"
	"%s/limits"
)

func main() { agent.Main(limits.All) }
`

// withAgent returns the agent's program if a folder has none. Somebody may have changed it.
func withAgent(folder fs.FS) (c Change, err error) {
	if exists(folder, agentFile) {
		return c, nil
	}
	mod, err := fs.ReadFile(folder, "go.mod")
	if err != nil {
		return c, err
	}
	module := moduleLine.FindSubmatch(mod)
	if module == nil {
		return c, errors.New("go.mod names no module")
	}
	text, err := format.Source(fmt.Appendf(nil, agentText, Module, module[1]))
	return Change{File: agentFile, What: "the agent, which answers beside an app", New: true, After: string(text)}, err
}
