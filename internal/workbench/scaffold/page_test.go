package scaffold

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cric-talk/guards"
)

const photosPage = `package limits

import "github.com/cric-talk/guards"

const (
	often   = "5" + "/60s"
	tooMany = "m"
)

var photoActivities = []guards.Activity{
	{Name: "upload_photo", Limit: guards.Limit(often), Tiers: guards.Tiers{"pro": guards.Limit("9/1m")}},
	{Name: "view_photo", Unlimited: true},
	{Name: "tag_photo", Limit: guards.Limit("writes: 9/1d"), Group: "work", Hold: true, Subjects: []guards.Subject{{Name: "room", Limit: guards.Limit("writes: 600/1d"), Optional: true}}},
}

var (
	Photos = guards.Guard{Name: "photos-guard", Message: tooMany, MemorySize: 512, Activities: photoActivities}
	Maps   = guards.Guard{Name: "maps-guard", Message: tooMany, Activities: []guards.Activity{{Name: "move_map", Limit: guards.Limit("2/1m")}}}
	Unused = guards.Guard{Name: "unused-guard", Message: tooMany}
)

var All = []guards.Guard{Maps, Photos}
`

var photosGuards = []guards.Guard{
	{Name: "photos-guard", Message: "m", MemorySize: 512, Activities: []guards.Activity{
		{Name: "upload_photo", Limit: "5/1m", Tiers: guards.Tiers{"pro": "9/1m"}},
		{Name: "view_photo", Unlimited: true},
		{Name: "tag_photo", Limit: "writes: 9/1d", Group: "work", Hold: true, Subjects: []guards.Subject{{Name: "room", Limit: "writes: 600/1d", Optional: true}}},
	}},
	{Name: "maps-guard", Message: "m", Activities: []guards.Activity{{Name: "move_map", Limit: "2/1m"}}},
}

func TestDiffers(t *testing.T) {
	for _, tt := range []struct{ old, changed, want string }{
		{"", "", ""},
		{`"/60s"`, `"0/1m"`, "upload_photo has the limit 50/1m there and 5/1m here"},
		{`guards.Limit(often)`, `guards.Limit("50/1m")`, "upload_photo has the limit 50/1m there and 5/1m here"},
		{`"pro": guards.Limit("9/1m")`, `"pro": guards.Limit("8/1m")`, "upload_photo, tier pro, has the limit 8/1m there and 9/1m here"},
		{`"pro": guards.Limit("9/1m")`, `"max": guards.Limit("9/1m")`, "upload_photo has the tier max only there"},
		{`, Tiers: guards.Tiers{"pro": guards.Limit("9/1m")}`, ``, "upload_photo has the tier pro only here"},
		{`"writes: 600/1d"`, `"writes: 6/1d"`, "tag_photo room has the limit writes: 6/1d there and writes: 600/1d here"},
		{`, Hold: true`, ``, "tag_photo has another Hold there"},
		{`MemorySize: 512`, `MemorySize: 256`, "photos-guard has another MemorySize there"},
		{`tooMany = "m"`, `tooMany = "n"`, "maps-guard has another Message there"},
		{`Unlimited: true`, `Limit: guards.Limit("9/1m")`, "view_photo has the limit 9/1m there and unlimited here"},
		{`{Name: "view_photo", Unlimited: true},`, ``, "view_photo is only here"},
		{`"view_photo"`, `"see_photo"`, "see_photo is only there"},
		{`{Maps, Photos}`, `{Photos}`, "maps-guard is only here"},
		{`{Maps, Photos}`, `{Photos, Maps, Unused}`, "unused-guard is only there"},

		// What only the compiler can tell is no difference.
		{`guards.Limit(often)`, `perMinute(50)`, ""},
		{`guards.Limit(often)`, `other.Limit("50/1m")`, ""},
		{`often   = "5" + "/60s"`, `often   = other.Text`, ""},
		{`{Maps, Photos}`, `append(others, Photos)`, ""},
		{`All = []guards.Guard{Maps, Photos}`, `All = withoutMaps()`, ""},
		{`MemorySize: 512`, `MemorySize: 1 << 9`, ""},
		{`{Name: "view_photo", Unlimited: true},`, `viewing(),`, ""},
		{`"/60s"`, "\"0/1m\"\n)\n\nfunc init() { All[0].Message = often }\n\nconst (", ""},
		{"package limits", "//go:build large\n\npackage limits", ""},
		{`import "github.com/cric-talk/guards"`, `import "example.com/guards"`, ""},
		{"var All", "func local() { var often = `50/1m` }\n\nvar All", ""},
		{"var All", "var All =", ""}, // it does not compile
	} {
		text := strings.Replace(photosPage, tt.old, tt.changed, 1)
		if tt.old != tt.changed && text == photosPage {
			t.Fatalf("the page does not contain %s", tt.old)
		}
		folder := fstest.MapFS{limitsFile: {Data: []byte(text)}, testFile: {Data: []byte("package limits_test")}}
		if got := Differs(folder, photosGuards); got != tt.want {
			t.Errorf("%s instead of %s: %q, want %q", tt.changed, tt.old, got, tt.want)
		}
	}
}

// A page can be in several files, and one of another system is not compiled here.
func TestDiffersReadsTheWholePackage(t *testing.T) {
	head, rest, _ := strings.Cut(photosPage, "var photoActivities")
	folder := fstest.MapFS{
		limitsFile:         {Data: []byte(head)},
		"limits/photos.go": {Data: []byte("package limits\n\nimport \"github.com/cric-talk/guards\"\n\nvar photoActivities" + rest)},
	}
	changed := photosGuards[:1]
	if got, want := Differs(folder, changed), "maps-guard is only there"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	folder["limits/more_plan9.go"] = &fstest.MapFile{Data: []byte("package limits")}
	if got := Differs(folder, changed); got != "" {
		t.Errorf("%q, want nothing, because of a file for another system", got)
	}
	if got := Differs(fstest.MapFS{}, changed); got != "" {
		t.Errorf("%q, want nothing without a page", got)
	}
}
