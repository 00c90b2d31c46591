"""Lines of orders, some with fields that cannot be read as declared."""

from __future__ import annotations

LINES = [
    '{"order_id":1,"qty":2,"price":"9.90","shipped_at":"2024-03-01T12:00:00Z","note":""}',
    '{"order_id":2,"qty":"","price":"5.00","shipped_at":"","note":null}',
    '{"order_id":3,"qty":"3","price":"","shipped_at":"0000-00-00 00:00:00"}',
    '{"order_id":4,"qty":null,"price":"1,000.50","shipped_at":"2024-03-01 13:00:00.123456789"}',
    '{"order_id":5,"qty":1.0,"price":7,"shipped_at":"null"}',
    '{"order_id":6,"qty":4,"price":"N/A","shipped_at":"2024-03-01T12:00:00+0200"}',
    '{"order_id":7,"qty":" 5 ","price":" 2.50 ","shipped_at":"2024-03-01T12:00:00.000+02:00"}',
    '{"order_id":8,"qty":true,"price":"-","shipped_at":"0001-01-01T00:00:00Z"}',
    '{"order_id":9,"qty":[],"price":"12,50","shipped_at":"03:04"}',
    '{"order_id":10,"qty":1,"price":1,"shipped_at":1700000000123,"note":"\\u0000"}',
    '{"order_id":11,"qty":17.5,"price":1e-5000,"shipped_at":"0000-01-01"}',
    '{"order_id":"x","qty":1}',
]
