// Command zones reads a limit in each time zone that its arguments name.
package main

import (
	"fmt"
	"os"
	"time"
	_ "time/tzdata" // as the packages have it that programs import

	"github.com/cric-talk/guards/internal/policy"
)

func main() {
	fmt.Println("started")
	summer := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, zone := range os.Args[1:] {
		p, err := policy.Parse("1/day in " + zone)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		ends := time.UnixMilli(p.Read(summer.UnixMilli(), 0, nil).ResetAt).UTC()
		fmt.Println(zone, ends.Format("15:04"))
	}
}
