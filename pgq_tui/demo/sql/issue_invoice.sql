-- In the transaction of the job; the invoice's number decides, so that no order is billed twice.
INSERT INTO shop.invoices (number, customer, total)
VALUES (%(number)s, %(customer)s, %(total)s)
ON CONFLICT (number) DO NOTHING
