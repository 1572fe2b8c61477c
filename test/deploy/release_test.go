package deploy

import (
	"archive/tar"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"portico/test/process"
)

// TestRelease checks a release that .ci/release-check has built.
func TestRelease(t *testing.T) {
	folder := os.Getenv("PORTICO_RELEASE")
	if folder == "" {
		t.Skip("there is no release to check: make release-check builds one")
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(archives) != 5 {
		t.Errorf("there are the archives %v: %v", archives, err)
	}
	for _, archive := range archives {
		program := filepath.Join(t.TempDir(), "portico")
		names := unpack(t, archive, program)
		for _, want := range []string{"LICENSE", "README.md", "config.example.yaml", "completion/portico.bash"} {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "/"+want) }) {
				t.Errorf("%s has no %s", archive, want)
			}
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		settings := map[string]string{}
		for _, setting := range info.Settings {
			settings[setting.Key] = setting.Value
		}
		platform := settings["GOOS"] + "-" + settings["GOARCH"]
		if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" || !strings.HasSuffix(archive, platform+".tar.gz") {
			t.Errorf("%s was built with %v", archive, settings)
		}
		if platform == "linux-amd64" {
			checkSBOM(t, folder, info)
		}
	}
}

// unpack writes the program of an archive to a file, and returns the names in the archive.
func unpack(t *testing.T, archive, program string) (names []string) {
	t.Helper()
	file, err := os.Open(archive)
	must(t, err)
	defer file.Close()
	plain, err := gzip.NewReader(file)
	must(t, err)
	for entries := tar.NewReader(plain); ; {
		entry, err := entries.Next()
		if err == io.EOF {
			return names
		}
		must(t, err)
		names = append(names, entry.Name)
		if name := filepath.Base(entry.Name); entry.Typeflag == tar.TypeReg && (name == "portico" || name == "portico.exe") {
			text, err := io.ReadAll(entries)
			must(t, err)
			must(t, os.WriteFile(program, text, 0o700))
		}
	}
}

// checkSBOM: each module in the program is in the list, and no other.
func checkSBOM(t *testing.T, folder string, info *buildinfo.BuildInfo) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.spdx.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("there are the lists %v: %v", files, err)
	}
	var list struct {
		SPDXVersion   string
		Packages      []struct{ SPDXID, Name, VersionInfo string }
		Relationships []struct{ RelatedSPDXElement string }
	}
	must(t, json.Unmarshal([]byte(read(t, files[0])), &list))
	var have, want []string
	for _, p := range list.Packages {
		have = append(have, p.Name+" "+p.VersionInfo)
	}
	for _, module := range info.Deps {
		want = append(want, module.Path+" "+module.Version)
	}
	if list.SPDXVersion != "SPDX-2.3" || len(have) < 2 || !slices.Equal(have[2:], want) || len(list.Relationships) != len(have) {
		t.Errorf("the list has %q, the program %q", have, want)
	}
}

// TestComposeConfiguration: Portico takes the file and the variables of deploy/compose.yaml, and no image floats.
func TestComposeConfiguration(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Image       string
			Environment map[string]string
		}
	}
	must(t, yaml.Unmarshal([]byte(read(t, "../../deploy/compose.yaml")), &compose))
	for name, service := range compose.Services {
		if _, tag, _ := strings.Cut(service.Image, ":"); strings.Count(tag, ".") < 1 || strings.Contains(tag, "latest") {
			t.Errorf("the image of %s is %q, which is no full version", name, service.Image)
		}
	}
	token := write(t, "sixteen bytes or more")
	command := exec.CommandContext(t.Context(), process.Portico(t), "check", "--config", "../../deploy/compose/portico.yaml")
	for name, value := range compose.Services["portico"].Environment {
		value = strings.ReplaceAll(value, "${POSTGRES_PASSWORD:?set POSTGRES_PASSWORD}", "secret")
		command.Env = append(command.Env, name+"="+strings.ReplaceAll(value, "/run/secrets/admin_token", token))
	}
	if output, err := command.CombinedOutput(); err != nil || len(command.Env) < 4 {
		t.Errorf("%v: %s", err, output)
	}
}
