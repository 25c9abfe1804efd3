"""The kinds of trouble that customers have, each with the desk that takes it and the tools that it needs."""

from __future__ import annotations

from typing import Final

from episodic.corpus.speech import Kind
from episodic.corpus.tools import (
    ACCOUNT_UPDATE,
    ACCOUNTS,
    CARRIER,
    CRASHES,
    DEVICES,
    GUARANTEES,
    INVOICES,
    KNOWLEDGE,
    ORDER_UPDATE,
    ORDERS,
    PAYMENTS,
    REFUNDS,
    RETURNS,
    SHIPMENTS,
    SIGN_INS,
    SUBSCRIPTIONS,
)

__all__ = [
    "ADDRESS_CHANGE",
    "APP_CRASH",
    "BROKEN_ITEM",
    "DATA_REQUEST",
    "DOUBLE_CHARGE",
    "EMAIL_CHANGE",
    "INVOICE_VAT",
    "LATE_DELIVERY",
    "LOGIN_2FA",
    "MISSING_PARCEL",
    "PASSWORD_RESET",
    "PAYMENT_DECLINED",
    "REFUND_STATUS",
    "SUBSCRIPTION_CANCEL",
    "SYNC_FAILURE",
    "WARRANTY",
    "WRONG_ITEM",
]

DOUBLE_CHARGE: Final = Kind("billing", "double_charge", PAYMENTS, REFUNDS)
REFUND_STATUS: Final = Kind("billing", "refund_status", REFUNDS, REFUNDS)
SUBSCRIPTION_CANCEL: Final = Kind("billing", "subscription_cancel", SUBSCRIPTIONS, SUBSCRIPTIONS)
INVOICE_VAT: Final = Kind("billing", "invoice_vat", INVOICES, INVOICES)
PAYMENT_DECLINED: Final = Kind("billing", "payment_declined", PAYMENTS, PAYMENTS)
LATE_DELIVERY: Final = Kind("orders", "late_delivery", SHIPMENTS, CARRIER)
MISSING_PARCEL: Final = Kind("orders", "missing_parcel", SHIPMENTS, ORDER_UPDATE)
WRONG_ITEM: Final = Kind("orders", "wrong_item", ORDERS, RETURNS)
ADDRESS_CHANGE: Final = Kind("orders", "address_change", ORDERS, ORDER_UPDATE)
LOGIN_2FA: Final = Kind("account", "login_2fa", SIGN_INS, ACCOUNT_UPDATE)
PASSWORD_RESET: Final = Kind("account", "password_reset", ACCOUNTS, ACCOUNT_UPDATE)
EMAIL_CHANGE: Final = Kind("account", "email_change", ACCOUNTS, ACCOUNT_UPDATE)
DATA_REQUEST: Final = Kind("account", "data_request", ACCOUNTS, ACCOUNT_UPDATE)
BROKEN_ITEM: Final = Kind("product", "broken_item", ORDERS, RETURNS)
APP_CRASH: Final = Kind("product", "app_crash", CRASHES, KNOWLEDGE)
WARRANTY: Final = Kind("product", "warranty", GUARANTEES, RETURNS)
SYNC_FAILURE: Final = Kind("product", "sync_failure", DEVICES, KNOWLEDGE)
