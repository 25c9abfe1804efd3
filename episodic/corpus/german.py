"""What is said in German. One sentence per line; the desk joins them into turns."""

from __future__ import annotations

from typing import Final

from episodic.corpus.kinds import (
    BROKEN_ITEM,
    DOUBLE_CHARGE,
    INVOICE_VAT,
    LATE_DELIVERY,
    LOGIN_2FA,
)
from episodic.corpus.speech import Exchange, Issue, Language
from episodic.corpus.tools import INVOICES, OTHER_ORDER, SHIPMENTS

__all__ = ["GERMAN"]

GERMAN: Final = Language(
    code="de",
    joint=" ",
    given=("Jürgen", "Sabine", "Lukas", "Anke", "Björn", "Käthe", "Moritz", "Heike", "Uwe", "Lena", "Götz", "Silke"),
    family=("Müller", "Schäfer", "Weiß", "Köhler", "Brandt", "Groß", "Lorenz", "Böhm", "Vogel", "Krüger", "Zöllner"),
    endings=("",),
    issues=(
        Issue.brief(
            DOUBLE_CHARGE,
            "Mir wurde die Bestellung {order} zweimal berechnet, beide Male {amount} von der Karte mit Endung {card}.",
            "Die zweite Abbuchung trägt das Datum {date} und die Referenz {request}, bestellt habe ich nur einmal.",
            "Ich sehe zwei Zahlungen über {amount}, die zweite entstand nach dem Fehler {error} an der Kasse.",
            "Der doppelte Betrag von {amount} wird erstattet und ist spätestens am {eta} wieder auf Ihrem Konto.",
            "Die Erstattung wurde mit {error} abgelehnt, deshalb muss die Buchhaltung den Vorgang freigeben.",
        ),
        Issue.brief(
            LATE_DELIVERY,
            "Mein Paket {tracking} sollte am {date} ankommen, die Sendungsverfolgung steht seit {days} Tagen still.",
            "Bestellt habe ich {model}, geliefert werden soll an {street}, {postcode} {city}, mit {carrier}.",
            "Die Sendung wurde in {warehouse} falsch sortiert und ist jetzt auf dem Weg nach {city}.",
            "{carrier} stellt das Paket am {eta} zu, die Expressgebühr von {part} bekommen Sie zurück.",
            "{carrier} hat auf unsere Nachforschung noch nicht geantwortet, vor dem {eta} kann ich leider nichts tun.",
        ),
        Issue.brief(
            BROKEN_ITEM,
            "Das Gerät {model} aus der Bestellung {order} ist defekt: Es lässt sich nicht mehr einschalten.",
            "Die Seriennummer lautet {serial}, ich habe bereits eine andere Steckdose und ein anderes Kabel versucht.",
            "Bei der Serie {model} ist dieser Fehler bekannt, das Bauteil wurde inzwischen geändert.",
            "Ein Ersatzgerät geht heute als {order2} an Sie, das Rücksendeetikett liegt in Ihrem Postfach.",
            "Das Modell ist ausverkauft und wird nicht repariert, darüber muss die Filialleitung entscheiden.",
        ),
        Issue.brief(
            LOGIN_2FA,
            "Ich kann mich nicht mehr anmelden, der sechsstellige Code wird jedes Mal mit {error} abgelehnt.",
            "Mein Konto läuft auf {email}, das Telefon ist ein {device}, die Ersatzcodes habe ich verloren.",
            "Nach mehreren Fehlversuchen aus {city} wurde das Konto vorsorglich gesperrt.",
            "Die Anmeldung in zwei Schritten ist zurückgesetzt, bitte richten Sie sie beim nächsten Mal neu ein.",
            "Ohne Prüfung Ihrer Identität darf ich die Sperre nicht aufheben, die Kollegen schreiben Ihnen bis {eta}.",
        ),
        Issue.brief(
            INVOICE_VAT,
            "Auf der Rechnung {invoice} fehlt unsere Umsatzsteuernummer {vat}, so kann sie niemand verbuchen.",
            "Die Firma sitzt in der {street}, {postcode} {city}, zu Händen von {name}.",
            "Die Rechnung wurde als Privatkauf ausgestellt, weil das Feld für die Steuernummer leer war.",
            "Die berichtigte Rechnung {invoice} ist soeben an {email} gegangen.",
            "Der Zeitraum ist steuerlich abgeschlossen, ändern kann die Rechnung nur noch die Buchhaltung.",
        ),
    ),
    circumstances=(
        "Ich habe deswegen schon zweimal geschrieben und keine Antwort erhalten.",
        "Es war als Geschenk gedacht, die Zeit wird also knapp.",
        "Seit {year} bin ich Kunde bei Ihnen und war bisher immer zufrieden.",
        "In der Warteschleife habe ich nach {minutes} Minuten aufgegeben.",
        "Ab dem {eta} bin ich verreist und kann mich dann nicht mehr darum kümmern.",
        "Meine Nachbarn in {city} haben genau dasselbe erlebt.",
        "Den Karton habe ich aufgehoben, falls Sie ihn zurückhaben möchten.",
    ),
    requests=(
        "Können Sie mir bitte helfen?",
        "Was kann man da tun?",
        "Bitte prüfen Sie das.",
        "Wie geht es jetzt weiter? 😕",
    ),
    questions=(
        "Guten Tag {first}, das tut mir leid, ich sehe sofort nach. Nennen Sie mir bitte noch die Einzelheiten?",
        "Hallo {first}, vielen Dank für Ihre Nachricht. Welche Angaben haben Sie noch für mich?",
    ),
    assurances=(
        "Ich habe alles unter {ticket} vermerkt, Sie müssen es nicht noch einmal erklären.",
        "Entschuldigen Sie bitte die Umstände, {first}.",
        "Als kleine Entschuldigung gilt der Gutschein {coupon} über {part} bis zum Jahresende.",
    ),
    offers=("Ist das für Sie in Ordnung?", "Soll ich das so machen?"),
    exchanges=(
        Exchange(
            "Wann genau wäre das Geld wieder auf der Karte mit der Endung {card}?",
            "Banken brauchen meist drei bis fünf Werktage, rechnen Sie also mit dem {eta}.",
        ),
        Exchange(
            "Und wie steht es um meine andere Bestellung {order2}?",
            "Die Bestellung {order2} ist in {warehouse} gepackt und geht morgen mit {carrier} auf die Reise.",
            OTHER_ORDER,
        ),
        Exchange(
            "Muss ich dafür zu Hause sein? Ich komme erst am Abend zurück.",
            "Nein, auch die Nachbarn dürfen es annehmen, sonst liegt es {days} Tage im Laden um die Ecke.",
            SHIPMENTS,
        ),
        Exchange(
            "Schicken Sie mir bitte auch die Rechnung noch einmal? Auf meinem {device} lässt sie sich nicht öffnen.",
            "Die Rechnung {invoice} ist noch einmal an {email} unterwegs, diesmal ohne Formularfelder.",
            INVOICES,
        ),
    ),
    agreements=(
        "Ja, bitte.",
        "In Ordnung.",
        "Gerne, machen Sie das so.",
        "Ja 👍",
        "Einverstanden, bitte auch an {email}.",
    ),
    caveats=("Die Versandkosten von {part} kann ich Ihnen allerdings nicht erstatten.",),
    thanks=("Vielen Dank, das ging schnell!", "Super, danke 🙏", "Danke, jetzt ist alles klar. Schönen Tag noch!"),
    complaints=(
        "Das hilft mir überhaupt nicht weiter, nach {minutes} Minuten bin ich so klug wie vorher 😠",
        "Dann kündige ich mein Konto und wende mich an die Verbraucherzentrale in {city}.",
    ),
    goodbyes=(
        "Gern geschehen, {first}! Das Gespräch {ticket} bleibt noch eine Woche offen.",
        "Alles Gute nach {city}!",
    ),
)
