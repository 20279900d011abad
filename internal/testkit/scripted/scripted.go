// Package scripted is the command line for scripts, whose clock stands still.
package scripted

import (
	"encoding/json"
	"os"
	"time"

	"github.com/cric-talk/guards/internal/limits"
)

// Main ends the process with the exit status of run, which is Main of package command.
// The variable NOW holds the time. GUARDS can name a file of JSON with other guards
// than the program's own. The program itself does not read these variables.
func Main(guards limits.Guards, run func(limits.Guards, func() time.Time) int) {
	if file := os.Getenv("GUARDS"); file != "" {
		guards = nil
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &guards)
		}
		if err != nil {
			panic(err)
		}
	}
	now, err := time.Parse(time.RFC3339, os.Getenv("NOW"))
	if err != nil {
		panic(err)
	}
	os.Exit(run(guards, func() time.Time { return now }))
}
