-- Writes an operator's action down, in the transaction that carries it out.
INSERT INTO {schema}.operations (operator, action, target, reason, affected, refused, parameters, undo)
VALUES (%(operator)s, %(action)s, %(target)s, %(reason)s, %(affected)s, %(refused)s, %(parameters)s::jsonb, %(undo)s::jsonb)
RETURNING id
