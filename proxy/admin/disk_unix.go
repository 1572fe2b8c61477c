//go:build unix

package admin

import "syscall"

// diskSpace returns the free bytes and the size of the disk that holds a folder, zeros if they are unknown.
func diskSpace(folder string) (free, size uint64) {
	var disk syscall.Statfs_t
	if syscall.Statfs(folder, &disk) != nil {
		return 0, 0
	}
	return uint64(disk.Bavail) * uint64(disk.Bsize), uint64(disk.Blocks) * uint64(disk.Bsize)
}
