// Release builds what a project without Go needs of a release, with the program guards for this machine alone.
package main

import (
	"context"
	"log"
	"os"
	"runtime"

	"github.com/cric-talk/guards/tools/release"
)

func main() {
	here := []release.Target{{OS: runtime.GOOS, Arch: runtime.GOARCH}}
	r := release.Release{Source: ".", Functions: "dist", Out: "dist/release", Targets: here, Log: os.Stdout, NoAWS: true}
	if err := r.Build(context.Background()); err != nil {
		log.Fatal(err)
	}
}
