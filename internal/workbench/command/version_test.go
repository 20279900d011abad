package command

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	platform := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}}
	commit := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.time", Value: "2026-11-22T10:46:34Z"},
	}
	changed := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, tt := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v0.1.0", commit, "guards v0.1.0 (commit 0123456789ab of 2026-11-22 10:46 UTC), go1.26.0, linux/arm64"},
		{"v0.1.0+dirty", append(commit, changed), "guards v0.1.0+dirty (commit 0123456789ab of 2026-11-22 10:46 UTC with changes), go1.26.0, linux/arm64"},
		{"v0.1.0", nil, "guards v0.1.0 (unknown commit), go1.26.0, linux/arm64"}, // go install of a version
		{"(devel)", nil, "guards devel (unknown commit), go1.26.0, linux/arm64"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: tt.version}, Settings: append(tt.settings, platform...)}
		if got := newBuild(info).String(); got != tt.want {
			t.Errorf("version %q: %s\nwant %s", tt.version, got, tt.want)
		}
	}
}
