package receipt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is the place of one receipt, held from before the first request until
// the end of the run.
type File struct {
	path string
}

// Reserve takes path for a receipt, by making it as an empty file of mode 0600.
// It fails if anything is there already or if the directory cannot be written:
// no run may begin that could not record its end.
func Reserve(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("receipt %s: is there already; a receipt is never overwritten: name another file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("receipt %s: cannot be written; name a file in a directory that can: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("receipt %s: %w", path, err)
	}
	return &File{path: path}, nil
}

// Path returns where the receipt is.
func (f *File) Path() string { return f.path }

// Write replaces what the file holds by r. Whoever reads the file, even after a
// crash, sees the old receipt or the new one, never a part.
func (f *File) Write(r Receipt) error {
	data, err := Encode(r)
	if err != nil {
		return err
	}
	if err := replace(f.path, data); err != nil {
		return fmt.Errorf("receipt %s: %w", f.path, err)
	}
	return nil
}

// replace writes data beside path, makes it durable and renames it to path.
func replace(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, ".mooring-receipt-*") // mode 0600; a name that is short enough wherever path is
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(temp.Name())))
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Sync(); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncDir makes a rename in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
