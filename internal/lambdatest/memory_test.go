package lambdatest

import "testing"

func TestKilobytes(t *testing.T) {
	status := []byte("Name:\tprobe\nVmHWM:\t   12345 kB\nVmRSS:\t    1000 kB\nThreads:\t8\n")
	if n, err := kilobytes(status, "VmRSS:"); n != 1000<<10 || err != nil {
		t.Errorf("%d, %v, want 1,000 KB", n, err)
	}
	if n, err := kilobytes(status, "VmSwap:"); err == nil {
		t.Errorf("a line that does not exist has %d bytes", n)
	}
}
