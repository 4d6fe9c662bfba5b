"""The audit of a whole ledger: everything worked out again, and every fault named."""

from a2a_ledger.audit.fault import Fault
from a2a_ledger.audit.whole import AuditReport, audit, audit_ledger

__all__ = ["AuditReport", "Fault", "audit", "audit_ledger"]
