package lambdatest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory returns how many bytes of memory the running function has now, and how
// many it had at most. It works only on Linux.
func (i *Instance) Memory() (now, most int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	if now, err = kilobytes(status, "VmRSS:"); err != nil {
		return 0, 0, err
	}
	most, err = kilobytes(status, "VmHWM:")
	return now, most, err
}

// kilobytes finds a line such as "VmRSS:  1234 kB" and returns its number of
// bytes.
func kilobytes(status []byte, name string) (int64, error) {
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("there is no %s in the status of the process", name)
}
