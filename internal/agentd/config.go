package agentd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// DefaultAddress is where an agent listens if nothing says otherwise.
const DefaultAddress = "127.0.0.1:2774"

// An Address is where an agent listens: a port, or the path of a socket.
type Address struct {
	network string // tcp or unix
	at      string // HOST:PORT, or an absolute path
}

// ParseAddress reads an address: HOST:PORT or unix:/PATH.
func ParseAddress(text string) (Address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if !filepath.IsAbs(path) || strings.HasSuffix(path, "/") {
			return Address{}, fmt.Errorf("GUARDS_AGENT_ADDR is %q, want the absolute path of a file after unix:, such as unix:/run/guards/agent.sock", text)
		}
		return Address{"unix", filepath.Clean(path)}, nil
	}
	_, port, err := net.SplitHostPort(text)
	if n, notNumber := strconv.Atoi(port); err != nil || notNumber != nil || n < 0 || n > 65535 {
		return Address{}, fmt.Errorf("GUARDS_AGENT_ADDR is %q, want HOST:PORT such as %s, or unix:/PATH", text, DefaultAddress)
	}
	return Address{"tcp", text}, nil
}

// String returns the address as ParseAddress reads it.
func (a Address) String() string {
	if a.network == "unix" {
		return "unix:" + a.at
	}
	return a.at
}

// reachable reports whether other machines can reach the address.
func (a Address) reachable() bool {
	if a.network == "unix" {
		return false
	}
	host, _, _ := net.SplitHostPort(a.at) // ParseAddress has split it
	ip := net.ParseIP(host)
	return !strings.EqualFold(host, "localhost") && (ip == nil || !ip.IsLoopback())
}

// listen listens on the address. A socket gets the mode.
func (a Address) listen(ctx context.Context, mode fs.FileMode) (net.Listener, error) {
	if a.network == "unix" {
		return listenUnix(ctx, a.at, mode)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.at)
	if err != nil {
		return nil, err
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok && !a.reachable() && !at.IP.IsLoopback() { // the name localhost can mean anything
		return nil, errors.Join(fmt.Errorf("%s is %s, which other machines can reach: set GUARDS_AGENT_TOKEN, or listen on 127.0.0.1", a.at, at.IP), l.Close())
	}
	return l, nil
}

// A socket removes its own file when it is closed, and no other agent's.
type socket struct {
	*net.UnixListener
	path string
	own  fs.FileInfo
}

// listenUnix makes a socket in a folder that is closed to others, gives it its mode, and then
// moves it to its path. So nobody connects before it has the mode, and a client that comes
// while it replaces a dead socket finds one of the two.
func listenUnix(ctx context.Context, path string, mode fs.FileMode) (net.Listener, error) {
	if err := free(ctx, path); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".g")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is empty, and this is a courtesy
	made := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	s := &socket{UnixListener: l, path: path}
	if err := os.Chmod(made, mode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if s.own, err = os.Lstat(made); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := os.Rename(made, path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// Close closes the listener and removes its file.
func (s *socket) Close() error {
	if at, err := os.Lstat(s.path); err == nil && os.SameFile(at, s.own) {
		_ = os.Remove(s.path)
	}
	return s.UnixListener.Close()
}

// free returns an error unless a socket can be made at path: there is no file, or a socket
// that nobody answers.
func free(ctx context.Context, path string) error {
	found, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case found.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is a file and no socket: remove it, or choose another path", path)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil
	case err == nil:
		return errors.Join(fmt.Errorf("another program answers on %s", path), c.Close())
	}
	return fmt.Errorf("%s can't be replaced, because it is not known whether somebody answers there: %w", path, err)
}

// A config is what the variables GUARDS_AGENT_* say.
type config struct {
	address Address
	mode    fs.FileMode // of a socket
	token   string
	noToken bool // the token is a mistake, so nobody can have it
}

// readConfig reads the variables. The error has all mistakes. The config is usable even so: a
// wrong value counts as unset.
func readConfig() (c config, err error) {
	text := cmp.Or(os.Getenv("GUARDS_AGENT_ADDR"), DefaultAddress)
	address, wrongAddress := ParseAddress(text)
	mode, wrongMode := socketMode(os.Getenv("GUARDS_AGENT_SOCKET_MODE"))
	token, wrongToken := Token()
	if wrongAddress == nil && address.reachable() && token == "" {
		wrongAddress = fmt.Errorf("GUARDS_AGENT_ADDR is %q, which other machines can reach: set GUARDS_AGENT_TOKEN, or listen on 127.0.0.1", text)
	}
	if wrongAddress != nil {
		address = Address{"tcp", DefaultAddress}
	}
	return config{address, mode, token, wrongToken != nil}, errors.Join(wrongAddress, wrongMode, wrongToken)
}

func socketMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(cmp.Or(text, "0600"), 8, 32)
	if err != nil || mode > 0o777 || mode&0o600 != 0o600 {
		return 0o600, fmt.Errorf("GUARDS_AGENT_SOCKET_MODE is %q, want an octal mode such as 0660", text)
	}
	return fs.FileMode(mode), nil
}

// Token reads the token that each request must have; empty: none is configured. The error
// never shows it.
func Token() (string, error) {
	token := os.Getenv("GUARDS_AGENT_TOKEN")
	switch {
	case token == NoToken:
		return "", errors.New("GUARDS_AGENT_TOKEN is the word that clients without a token send: choose a secret")
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "", errors.New("GUARDS_AGENT_TOKEN has a character that a header can't carry, want ! to ~, without spaces and line ends")
	}
	return token, nil
}
