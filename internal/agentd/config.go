package agentd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

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
