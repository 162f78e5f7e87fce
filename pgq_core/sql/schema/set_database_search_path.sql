ALTER DATABASE {database} SET search_path = {schema}{rest}
