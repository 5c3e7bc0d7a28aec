package receipt

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	attestation "github.com/in-toto/attestation/go/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// MaxBytes is the largest receipt that is read: some thousand volumes.
const MaxBytes = 8 << 20

// Schema is the JSON Schema of a whole receipt file.
//
//go:embed schema.json
var Schema []byte

// Encode returns the receipt as an in-toto Statement v1, after checking it
// against the schema: what is written can be verified.
func Encode(r Receipt) ([]byte, error) {
	fields, err := toMap(r)
	if err != nil {
		return nil, err
	}
	predicate, err := structpb.NewStruct(fields)
	if err != nil {
		return nil, fmt.Errorf("receipt as a predicate: %w", err)
	}
	statement := &attestation.Statement{
		Type:          attestation.StatementTypeUri,
		Subject:       subjects(r),
		PredicateType: PredicateType,
		Predicate:     predicate,
	}
	compact, err := protojson.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("receipt as JSON: %w", err)
	}
	// protojson's white space changes from build to build on purpose.
	var indented bytes.Buffer
	if err := json.Indent(&indented, compact, "", "  "); err != nil {
		return nil, fmt.Errorf("receipt as JSON: %w", err)
	}
	indented.WriteByte('\n')
	if _, err := Decode(indented.Bytes()); err != nil {
		return nil, fmt.Errorf("the receipt does not satisfy its own schema: %w", err)
	}
	return indented.Bytes(), nil
}

func subjects(r Receipt) []*attestation.ResourceDescriptor {
	list := make([]*attestation.ResourceDescriptor, len(r.Volumes))
	for i, v := range r.Volumes {
		list[i] = &attestation.ResourceDescriptor{
			Name:   "persistentvolumes/" + v.Planned.Name,
			Digest: map[string]string{"sha256": strings.TrimPrefix(v.Planned.ManifestDigest, "sha256:")},
		}
	}
	return list
}

func toMap(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("receipt as JSON: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("receipt as JSON: %w", err)
	}
	return fields, nil
}

// ErrInvalid is the class of every error of Decode.
var ErrInvalid = errors.New("not a valid receipt")

// Decode returns the receipt in data, after checking schema, in-toto statement
// and every digest that can be computed from the receipt itself. It proves that
// the receipt is whole, not who wrote it: receipts are not signed.
func Decode(data []byte) (Receipt, error) {
	// 1. Size and emptiness.
	if len(data) > MaxBytes {
		return Receipt{}, fmt.Errorf("%w: %d bytes; expected at most %d", ErrInvalid, len(data), MaxBytes)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return Receipt{}, fmt.Errorf("%w: the file is empty: its run ended before it had anything to record, and before it wrote to the cluster", ErrInvalid)
	}
	// 2. The schema.
	if err := checkSchema(data); err != nil {
		return Receipt{}, err
	}
	// 3. The statement; protojson refuses unknown and duplicate fields.
	var statement attestation.Statement
	if err := protojson.Unmarshal(data, &statement); err != nil {
		return Receipt{}, fmt.Errorf("%w: no in-toto statement: %w", ErrInvalid, err)
	}
	if err := statement.Validate(); err != nil {
		return Receipt{}, fmt.Errorf("%w: no in-toto statement: %w", ErrInvalid, err)
	}
	r, err := fromPredicate(statement.GetPredicate())
	if err != nil {
		return Receipt{}, err
	}
	// 4. The digests.
	return r, checkDigests(&statement, r)
}

func fromPredicate(predicate *structpb.Struct) (Receipt, error) {
	data, err := predicate.MarshalJSON()
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: predicate: %w", ErrInvalid, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var r Receipt
	if err := decoder.Decode(&r); err != nil {
		return Receipt{}, fmt.Errorf("%w: predicate: %w", ErrInvalid, err)
	}
	return r, nil
}

func checkDigests(statement *attestation.Statement, r Receipt) error {
	if len(statement.GetSubject()) != len(r.Volumes) {
		return fmt.Errorf("%w: subject: %d entries for %d volumes", ErrInvalid, len(statement.GetSubject()), len(r.Volumes))
	}
	for i, v := range r.Volumes {
		if got := Digest(v.Manifest); got != v.Planned.ManifestDigest {
			return fmt.Errorf("%w: volumes[%d].planned.manifestDigest: the manifest in the receipt has the digest %s; one of the two was changed", ErrInvalid, i, got)
		}
		want := subjects(r)[i]
		if got := statement.GetSubject()[i]; got.GetName() != want.GetName() || got.GetDigest()["sha256"] != want.GetDigest()["sha256"] {
			return fmt.Errorf("%w: subject[%d]: expected %s with the digest of its manifest", ErrInvalid, i, want.GetName())
		}
	}
	if r.PlanDigest != "" && r.PlanDigest != r.ComputePlanDigest() {
		return fmt.Errorf("%w: planDigest: the plan in the receipt has the digest %s; one of the two was changed", ErrInvalid, r.ComputePlanDigest())
	}
	return nil
}

var compiledSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		return nil, fmt.Errorf("receipt schema: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(PredicateType, document); err != nil {
		return nil, fmt.Errorf("receipt schema: %w", err)
	}
	return compiler.Compile(PredicateType)
})

func checkSchema(data []byte) error {
	schema, err := compiledSchema()
	if err != nil {
		return err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: no JSON: %w", ErrInvalid, err)
	}
	if err := schema.Validate(document); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}
