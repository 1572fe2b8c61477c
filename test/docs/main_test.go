package docs

import (
	"os"
	"testing"

	"portico/test/process"
)

func TestMain(m *testing.M) { os.Exit(process.Main(m)) }
