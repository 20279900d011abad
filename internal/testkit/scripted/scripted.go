// Package scripted is the command line for scripts, whose clock stands still.
package scripted

import (
	"encoding/json"
	"os"
	"time"

	"github.com/cric-talk/guards"
)

// Main ends the process with the exit status of run, which is Main of package command.
// The variable NOW holds the time. GUARDS can name a file of JSON with other guards
// than the program's own. The program itself does not read these variables.
func Main(page []guards.Guard, run func([]guards.Guard, func() time.Time) int) {
	if file := os.Getenv("GUARDS"); file != "" {
		page = nil
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &page)
		}
		if err != nil {
			panic(err)
		}
	}
	now, err := time.Parse(time.RFC3339, os.Getenv("NOW"))
	if err != nil {
		panic(err)
	}
	os.Exit(run(page, func() time.Time { return now }))
}
