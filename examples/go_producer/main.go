// A producer in Go: the order and its job are committed together, by the SQL function enqueue.
//
//	go mod init producer && go get github.com/lib/pq && go run main.go
package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"os"

	_ "github.com/lib/pq"
)

const createOrders = `CREATE TABLE IF NOT EXISTS public.orders (number text PRIMARY KEY)`
const insertOrder = `INSERT INTO public.orders (number) VALUES ($1) ON CONFLICT DO NOTHING`
const enqueue = `SELECT pgq_core.enqueue($1, $2::jsonb, queue => $3, idempotency_key => $4)`

func placeOrder(db *sql.DB, number string) (id int64, err error) {
	data, err := json.Marshal(map[string]string{"order": number})
	if err != nil {
		return 0, err
	}
	tx, err := db.Begin()
	if err != nil {
		return 0, err
	}
	defer tx.Rollback() // after a commit it does nothing
	if _, err = tx.Exec(insertOrder, number); err != nil {
		return 0, err
	}
	// The second time the key answers the id of the first job.
	if err = tx.QueryRow(enqueue, "ship_order", string(data), "shipping", "ship-"+number).Scan(&id); err != nil {
		return 0, err
	}
	return id, tx.Commit()
}

func main() {
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err = db.Exec(createOrders); err != nil {
		log.Fatal(err)
	}
	for i := 0; i < 2; i++ {
		id, err := placeOrder(db, "2026-0001")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
}
