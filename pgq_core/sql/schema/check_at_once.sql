-- For the rest of this transaction: a constraint that would only be checked at its end could not be told from the others then.
SET CONSTRAINTS ALL IMMEDIATE
