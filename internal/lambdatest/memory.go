package lambdatest

import (
	"fmt"
	"os"
)

// Memory returns how many bytes of memory the running function has now. It
// works only on Linux.
func (i *Instance) Memory() (bytes int64, err error) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", i.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var virtual, resident int64 // pages
	if _, err := fmt.Sscan(string(statm), &virtual, &resident); err != nil {
		return 0, err
	}
	return resident * int64(os.Getpagesize()), nil
}
