//go:build !unix

package transport

// silent reports whether an idle connection may be used. Here only a failing request tells that the tracker has closed it.
func (*conn) silent() bool { return true }

// await does nothing here.
func (*conn) await() {}
