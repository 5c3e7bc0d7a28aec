package receipt

//go:generate cp schema.json ../../docs/receipt.schema.json
