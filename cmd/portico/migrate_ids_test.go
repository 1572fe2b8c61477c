package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// idsConfig writes a configuration of two trackers with other ids.
func idsConfig(t *testing.T) string {
	t.Helper()
	more := "switchover: {ids: {bug: {mode: table, offset: 1000}}}\n"
	return writeFile(t, "c.yaml", pairConfig("http://127.0.0.1:1/", "http://127.0.0.1:2/", filepath.Join(t.TempDir(), "ids.db"), more))
}

func TestFilesOfIDs(t *testing.T) {
	t.Parallel()
	const header = "kind,client,new,old\n"
	config := idsConfig(t)
	for _, args := range [][]string{{"ids", "export"}, {"ids", "export", filepath.Join(t.TempDir(), "backup.csv")}, {"ids", "check"}, {"journal", "list"}, {"journal", "resume", "--actor", "a", "--reason", "r"}} {
		if code, _, stderr := portico(t, nil, append(append([]string{"migrate"}, args...), "--config", config)...); code != 1 || !strings.Contains(stderr, "there is no store at") {
			t.Errorf("%v of a store that is not there exits with %d: %s", args, code, stderr)
		}
	}
	for _, c := range []struct {
		name, command, file string
		code                int
		says                []string
	}{
		{"before the first import", "check", header + "bug,7,70,\n", 0, []string{"1 ids are good."}},
		{"good", "import", header + "bug,7,70,\nattachment,5,50,\nattachment,1000000009,,12\n", 0, []string{"3 ids are kept."}},
		{"again, with one more", "import", "kind,client,new\nbug,7,70\nbug,8,80\n", 0, []string{"2 ids are kept."}},
		{"gaps", "check", header + "bug,12,1,\nbug,7,2,\nattachment,5,50,\nbug,8,3,\n", 0, []string{"FILE:2: bug: no ids from 9 to 11", "4 ids are good."}},
		{"duplicates", "check", header + "bug,7,70,\nbug,8,70,\nbug,7,71,\n", 1, []string{"FILE:3: ", "FILE:4: ", "line 2 has one of these ids"}},
		{"rules", "import", header + "bug,7,,70\nbug,2000,70,\nuser,1,2,\nflag,0,1,\nattachment,2147483648,1,\n", 1,
			[]string{"FILE:2: ", "FILE:3: ", "FILE:4: ", "FILE:5: ", "FILE:6: "}},
		{"no numbers", "import", header + "bug,7,,\nbug,x,70,\nbug,9,1,2\nbug\n", 1, []string{"FILE:2: ", "FILE:3: ", "FILE:4: ", "FILE:5: "}},
		{"other columns", "import", "kind,old,new\nbug,7,70\n", 1, []string{"does not begin with the line kind,client,new,old"}},
		{"contradicting", "import", header + "bug,30,300,\nbug,7,71,\n", 1, []string{"bug 7 is 71", "bug 7 is 70", "0 ids are kept"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := writeFile(t, "ids.csv", c.file)
			code, stdout, stderr := portico(t, nil, "migrate", "ids", c.command, file, "--config", config)
			output := strings.ReplaceAll(stdout+stderr, file, "FILE")
			if code != c.code {
				t.Errorf("exits with %d, want %d", code, c.code)
			}
			for _, text := range c.says {
				if !strings.Contains(output, text) {
					t.Errorf("does not say %q:\n%s", text, output)
				}
			}
		})
	}
	const kept = header + "attachment,5,50,\nattachment,1000000009,,12\nbug,7,70,\nbug,8,80,\n"
	if code, stdout, stderr := portico(t, nil, "migrate", "ids", "export", "--config", config); code != 0 || stdout != kept {
		t.Errorf("export exits with %d:\n%s%s", code, stdout, stderr)
	}
	const report = "{\n  \"ids\": 3,\n  \"gaps\": [\n    \"bug: no ids from 8 to 8\"\n  ]\n}\n"
	gappy := idsConfig(t)
	for _, args := range [][]string{{"import", writeFile(t, "ids.csv", header+"bug,7,70,\nbug,9,90,\nattachment,5,50,\n")}, {"check"}} {
		code, stdout, stderr := portico(t, nil, append([]string{"migrate", "ids", "--output", "json", "--config", gappy}, args...)...)
		if args[0] == "check" && stdout != report || !strings.Contains(stdout, `"ids": 3`) || code != 0 {
			t.Errorf("%v as JSON exits with %d:\n%s%s", args, code, stdout, stderr)
		}
	}
	without := writeFile(t, "c.yaml", pairConfig("http://127.0.0.1:1/", "http://127.0.0.1:2/", filepath.Join(t.TempDir(), "ids.db"), ""))
	if code, _, stderr := portico(t, nil, "migrate", "ids", "check", "--config", without); code != 1 || !strings.Contains(stderr, "no switchover.ids") {
		t.Errorf("without ids it exits with %d: %s", code, stderr)
	}
	backup, other := filepath.Join(t.TempDir(), "backup.csv"), idsConfig(t)
	for _, args := range [][]string{{"export", backup, "--config", config}, {"import", backup, "--config", other}, {"check", "--config", other}} {
		if code, stdout, stderr := portico(t, nil, append([]string{"migrate", "ids"}, args...)...); code != 0 {
			t.Errorf("%v exits with %d:\n%s%s", args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := portico(t, nil, "migrate", "ids", "export", "--config", other); stdout != kept {
		t.Errorf("what was put back is\n%s", stdout)
	}
	if code, _, stderr := portico(t, nil, "migrate", "ids", "export", backup, "--config", config); code != 1 || !strings.Contains(stderr, "exists") {
		t.Errorf("a file is overwritten: %s", stderr)
	}
}
