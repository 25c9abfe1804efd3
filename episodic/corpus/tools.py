"""The back-office tools of the support desk and the answers they give, as JSON members with `{fact}` slots."""

from __future__ import annotations

from typing import Final

from episodic.corpus.speech import Tool

__all__ = [
    "ACCOUNTS",
    "ACCOUNT_UPDATE",
    "CARRIER",
    "CRASHES",
    "DEVICES",
    "GUARANTEES",
    "INVOICES",
    "KNOWLEDGE",
    "ORDERS",
    "ORDER_UPDATE",
    "OTHER_ORDER",
    "PAYMENTS",
    "REFUNDS",
    "RETURNS",
    "SHIPMENTS",
    "SIGN_INS",
    "SUBSCRIPTIONS",
]

_DOWN: Final = (
    (
        '"error": "{error}", "message": "upstream timed out after 30 s", "retryable": true, '
        '"request": "{request}", "subject": "{order}", "attempts": 3'
    ),
    (
        '"error": "HTTP 503", "message": "service unavailable, maintenance window open", "retryable": true, '
        '"request": "{request}", "retry_after_seconds": {minutes}'
    ),
    (
        '"error": "{error}", "message": "refused by policy, a person has to approve this", "retryable": false, '
        '"request": "{request}", "ticket_id": "{ticket}"'
    ),
)

PAYMENTS: Final = Tool(
    "payments.search",
    (
        (
            '"order_id": "{order}", "payments": ["pay_{request}", "pay_{serial}"], "amount": "{amount}", '
            '"status": "captured", "card_last4": "{card}", "captured_at": "{date}", "currency_rate_on": "{date}"'
        ),
        (
            '"payment_id": "pay_{request}", "order_id": "{order}", "amount": "{amount}", "state": "authorised", '
            '"three_d_secure": "attempted", "code": "{error}", "customer": "{email}"'
        ),
        (
            '"matches": 2, "order_id": "{order}", "total": "{amount}", "first": "pay_{request}", '
            '"second": "pay_{serial}", "settled": false, "risk": "low", "country": "{country}"'
        ),
    ),
    _DOWN,
)
REFUNDS: Final = Tool(
    "refunds.create",
    (
        (
            '"refund_id": "rf_{request}", "order_id": "{order}", "amount": "{amount}", "status": "pending", '
            '"method": "original card ending {card}", "expected_on": "{eta}", "reason": "customer request"'
        ),
        (
            '"refund_id": "rf_{request}", "payment_id": "pay_{serial}", "amount": "{part}", "status": "accepted", '
            '"approved_by": "{colleague}", "method": "bank transfer", "expected_on": "{eta}"'
        ),
    ),
    _DOWN,
)
INVOICES: Final = Tool(
    "invoices.get",
    (
        (
            '"invoice": "{invoice}", "order_id": "{order}", "net": "{part}", "gross": "{amount}", '
            '"vat_id": "{vat}", "issued_on": "{date}", "billing_city": "{city}", "language": "en", "pdf": true'
        ),
        (
            '"invoice": "{invoice}", "buyer": "{name}", "vat_id": null, "reverse_charge": false, '
            '"gross": "{amount}", "currency_rate_on": "{date}", "lines": {days}, "archived": false, '
            '"sent_to": "{email}"'
        ),
    ),
    _DOWN,
)
SUBSCRIPTIONS: Final = Tool(
    "subscriptions.get",
    (
        (
            '"plan": "{plan}", "subscription_id": "sub_{request}", "renews_on": "{eta}", "price": "{amount}", '
            '"seats": {days}, "cancel_at_period_end": false, "owner": "{email}", "coupon": "{coupon}"'
        ),
        (
            '"plan": "{plan}", "state": "past_due", "last_attempt": "{date}", "decline_code": "{error}", '
            '"card_last4": "{card}", "dunning_step": 2, "owner": "{email}"'
        ),
    ),
    _DOWN,
)
ORDERS: Final = Tool(
    "orders.lookup",
    (
        (
            '"order_id": "{order}", "status": "shipped", "placed_on": "{date}", "items": ["{model}"], '
            '"sku": "{sku}", "total": "{amount}", "ship_to": "{city}", "carrier": "{carrier}", '
            '"tracking": "{tracking}"'
        ),
        (
            '"order_id": "{order}", "status": "packing", "warehouse": "{warehouse}", "lines": {days}, '
            '"first_line": "{product}", "colour": "{colour}", "total": "{amount}", "gift": false'
        ),
        (
            '"order_id": "{order}", "status": "delivered", "delivered_on": "{date}", "sku": "{sku}", '
            '"buyer": "{name}", "ship_to": "{street}, {postcode} {city}", "paid": true'
        ),
    ),
    _DOWN,
)
OTHER_ORDER: Final = Tool(
    "orders.lookup",
    (
        (
            '"order_id": "{order2}", "status": "packed", "lines": 1, "first_line": "{thing2}", "total": "{part}", '
            '"warehouse": "{warehouse}", "carrier": "{carrier}", "buyer": "{name}"'
        ),
        (
            '"order_id": "{order2}", "status": "packed", "items": ["{thing2}"], "paid": true, "ship_to": "{city}", '
            '"warehouse": "{warehouse}", "handed_over": null, "account": "{email}"'
        ),
    ),
    _DOWN,
)
ORDER_UPDATE: Final = Tool(
    "orders.update",
    (
        (
            '"order_id": "{order}", "changed": ["ship_to"], "ship_to": "{street}, {postcode} {city}", '
            '"revision": {days}, "confirmed_to": "{email}", "leaves_warehouse_on": "{eta}"'
        ),
        (
            '"order_id": "{order}", "replacement": "{order2}", "sku": "{sku}", "status": "created", '
            '"priority": "express", "warehouse": "{warehouse}", "expected_on": "{eta}", "charge": "0.00"'
        ),
    ),
    _DOWN,
)
SHIPMENTS: Final = Tool(
    "shipments.track",
    (
        (
            '"tracking": "{tracking}", "carrier": "{carrier}", "last_scan": "{date}", "location": "{warehouse}", '
            '"state": "in transit", "delay_reason": "missorted", "expected_on": "{eta}"'
        ),
        (
            '"tracking": "{tracking}", "carrier": "{carrier}", "state": "held", "reason": "address incomplete", '
            '"depot": "{city}", "attempts": {days}, "return_on": "{eta}", "weight_kg": 2.{card}'
        ),
        (
            '"tracking": "{tracking}", "state": "delivered", "signed_by": "neighbour", "scanned_at": "{date}", '
            '"gps": "near {street}", "photo": true, "courier": "{colleague}"'
        ),
    ),
    _DOWN,
)
CARRIER: Final = Tool(
    "carrier.investigate",
    (
        (
            '"case": "INQ-{request}", "tracking": "{tracking}", "carrier": "{carrier}", "opened_for": "{name}", '
            '"answer_due": "{eta}", "claim_value": "{amount}", "state": "open"'
        ),
        (
            '"case": "INQ-{request}", "tracking": "{tracking}", "result": "found at depot", '
            '"depot": "{warehouse}", "redelivery_on": "{eta}", "contact": "{email}", "surcharge": "0.00"'
        ),
    ),
    _DOWN,
)
ACCOUNTS: Final = Tool(
    "accounts.get",
    (
        (
            '"email": "{email}", "name": "{name}", "created_on": "{date}", "locked": false, "two_factor": "totp", '
            '"devices": {days}, "last_device": "{device}", "country": "{country}", "newsletter": false'
        ),
        (
            '"email": "{email}", "state": "locked", "lock_reason": "{error}", "failed_attempts": {minutes}, '
            '"two_factor": "sms", "locale_city": "{city}", "support_level": "{plan}"'
        ),
    ),
    _DOWN,
)
SIGN_INS: Final = Tool(
    "auth.events",
    (
        (
            '"account": "{email}", "events": {minutes}, "last_error": "{error}", "last_device": "{device}", '
            '"last_city": "{city}", "clock_skew_seconds": 9{days}, "app": "{version}", "blocked": true'
        ),
        (
            '"account": "{email}", "result": "code rejected", "code": "{error}", "factor": "totp", '
            '"attempts": {days}, "from": "{device}", "session": "{request}", "risk_score": 0.{card}'
        ),
    ),
    _DOWN,
)
ACCOUNT_UPDATE: Final = Tool(
    "accounts.update",
    (
        (
            '"account": "{email}", "changed": ["two_factor"], "recovery_codes": 10, "sessions_closed": {days}, '
            '"mail_sent": true, "audit": "{request}", "valid_until": "{eta}"'
        ),
        (
            '"account": "{email}", "reset_link": "sent", "expires_in_minutes": {minutes}, "channel": "email", '
            '"requested_from": "{device}", "audit": "{request}", "unlocked": true'
        ),
    ),
    _DOWN,
)
DEVICES: Final = Tool(
    "devices.diagnose",
    (
        (
            '"serial": "{serial}", "model": "{model}", "firmware": "{version}", "battery_cycles": {minutes}, '
            '"last_sync": "{date}", "self_test": "{error}", "uptime_days": {days}, "paired_with": "{device}"'
        ),
        (
            '"serial": "{serial}", "sku": "{sku}", "firmware": "{version}", "update_available": true, '
            '"signal": "weak", "temperature_c": {minutes}, "faults": ["{error}"], "region": "{country}"'
        ),
    ),
    _DOWN,
)
CRASHES: Final = Tool(
    "crashes.search",
    (
        (
            '"app": "{version}", "device": "{device}", "signature": "{error} in {module}", '
            '"reports_today": {minutes}, "first_seen": "{date}", "fixed_in": null, "account": "{email}"'
        ),
        (
            '"signature": "{module}.on_resume", "code": "{error}", "app": "{version}", "share_percent": 0.{card}, '
            '"duplicates_of": "BUG-{bug}", "owner": "{colleague}", "planned_for": "{eta}"'
        ),
    ),
    _DOWN,
)
GUARANTEES: Final = Tool(
    "warranty.check",
    (
        (
            '"serial": "{serial}", "model": "{model}", "bought_on": "{date}", "covered": true, "ends_on": "{eta}", '
            '"order_id": "{order}", "excluded": ["liquid", "drop"], "proof": "{invoice}"'
        ),
        (
            '"serial": "{serial}", "sku": "{sku}", "covered": false, "reason": "proof of purchase missing", '
            '"retailer": "{warehouse}", "goodwill_limit": "{part}", "ticket_id": "{ticket}"'
        ),
    ),
    _DOWN,
)
RETURNS: Final = Tool(
    "returns.create",
    (
        (
            '"rma": "RMA-{request}", "order_id": "{order}", "item": "{model}", "label_sent_to": "{email}", '
            '"carrier": "{carrier}", "drop_off_before": "{eta}", "inspection_days": {days}'
        ),
        (
            '"rma": "RMA-{request}", "serial": "{serial}", "replacement": "{order2}", "pickup_on": "{eta}", '
            '"pickup_at": "{street}, {city}", "refund_if_lost": "{amount}"'
        ),
    ),
    _DOWN,
)
KNOWLEDGE: Final = Tool(
    "articles.search",
    (
        (
            '"articles": ["KB-{bug}", "KB-{card}"], "best": "KB-{bug}", '
            '"title": "{thing}: care, parts and settings", "score": 0.{card}, "updated_on": "{date}", '
            '"language": "en"'
        ),
        (
            '"articles": ["KB-{card}"], "title": "What changes with {version}", "helpful_percent": {minutes}, '
            '"author": "{colleague}", "updated_on": "{date}", "region": "{country}"'
        ),
    ),
    _DOWN,
)
