// Package jsonblob reads and writes JSON whose large base64 members stay out of the heap: Split copies a document and diverts
// attachment content to a Blob, in memory up to a threshold and in a temporary file beyond; Join puts it back with an exact length
// (docs/reference/interface.md, attachment content).
//
//	skeleton, blobs, err := Split(nil, body, SplitOptions{…}) // strict JSON in, small skeleton and blobs out
//	blob, ok := BlobAt(raw, blobs)                            // the value of a member `data`, while decoding
//	dst = AppendBlob(dst, blob, &blobs)                       // the same while encoding
//	joined, err := Join(skeleton, blobs)                      // the document again: Len, Open, WriteTo
//	CloseBlobs(blobs)                                         // when the request has been handled
//
// The caller of Split owns the blobs and closes them; Joined and the readers of a Blob own nothing.
package jsonblob
