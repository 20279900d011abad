package testkit

import (
	"context"
	"errors"
	"net"
)

// KnowsAbsent reports whether this machine's resolver knows that a host does not
// exist. It can't if no name server can be reached.
func KnowsAbsent(ctx context.Context, host string) bool {
	_, err := net.DefaultResolver.LookupHost(ctx, host)
	absent, ok := errors.AsType[*net.DNSError](err)
	return ok && absent.IsNotFound
}
