package lambdatest

import "testing"

// A test that runs beside make planted must not start a binary with a planted
// bug.
func TestAPlantedBugIsBuiltInADirectoryOfItsOwn(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // of the user's cache
	t.Setenv("XDG_CACHE_HOME", "")
	dirs := map[string]bool{}
	for _, bug := range []string{"", "breaker-never-closes"} {
		t.Setenv("PLANTED", bug)
		dir, err := outputDir("/checkout", "./functions/posts-guard")
		if err != nil {
			t.Fatal(err)
		}
		dirs[dir] = true
	}
	if len(dirs) != 2 {
		t.Errorf("the directories with and without a bug are %v, want two", dirs)
	}
}
