"""English issues about accounts, apps and faulty goods. One sentence per line; the desk joins them into turns."""

from __future__ import annotations

from typing import Final

from episodic.corpus.kinds import (
    APP_CRASH,
    BROKEN_ITEM,
    DATA_REQUEST,
    EMAIL_CHANGE,
    LOGIN_2FA,
    PASSWORD_RESET,
    SYNC_FAILURE,
    WARRANTY,
)
from episodic.corpus.speech import Issue

__all__ = ["PRODUCT_ISSUES"]

PRODUCT_ISSUES: Final = (
    Issue(
        kind=LOGIN_2FA,
        opening=(
            "I cannot log in any more: the six digit code from my authenticator is always rejected with {error}.",
            "I have a new {device} and the two-factor codes stayed on the old one, which I already sold.",
            "The text message with the login code never arrives, I have been waiting for {minutes} minutes.",
            "After the update to {version} the app asks for a code every single time and then logs me out.",
        ),
        detail=(
            "The account is {email}, last used in {city}, and I do not have the recovery codes any more.",
            "I typed the code {days} times, the clock of the phone is right, the message stays {error}.",
            "It is the same in the browser and in the app {version} on the {device}.",
        ),
        finding=(
            "Your authenticator runs ahead of our clock by a minute and a half, so each code comes too early.",
            "The codes go to a number that ends in {card}, which does not seem to be yours any longer.",
            "There were {minutes} failed attempts from {city}, and the account was locked for safety on {day}.",
        ),
        solved=(
            "Two-factor login has been reset for {email}, you will be asked to scan a fresh code at the next login.",
            "I have sent ten new recovery codes to {email}, please keep them somewhere away from the {device}.",
        ),
        unsolved=(
            "I may not switch off the second factor without an identity check, and that check is done by people.",
            "The reset ended with {error}, the security team will write to {email} until {eta}.",
        ),
    ),
    Issue(
        kind=BROKEN_ITEM,
        opening=(
            "The {product} arrived broken: {fault}, and the carton was dented on one side.",
            "I unpacked the {product} from {order} today and {fault}.",
            "After {days} days of normal use {fault}, I would not expect that of any {thing} for {amount}.",
            "My {product} in {colour} is damaged, {fault}, and one of the screws rolls around inside.",
        ),
        detail=(
            "The serial number is {serial}, order {order}, it has been standing in {place} since {day}.",
            "I have tried another socket, another cable and a reset as in the manual, still {fault}.",
            "There are photos of the carton and of the {thing}, I can upload them if you need them.",
        ),
        finding=(
            "The {model} with the serial {serial} belongs to a batch in which such damage was reported before.",
            "The photos show a transport damage, so {carrier} will have to answer for it and not you.",
            "What you describe is a known weakness of the first {model} series, the part has been changed since.",
        ),
        solved=(
            "A new {product} leaves as {order2} on {eta}, and the broken one is collected at {street}.",
            "I have sent you a prepaid label, and {amount} is refunded as soon as the label is scanned.",
        ),
        unsolved=(
            "The {model} is out of stock and a repair is not offered for it, so I need to ask the shop manager.",
            "The return was refused with {error} since the order is more than two years old.",
        ),
    ),
    Issue(
        kind=APP_CRASH,
        opening=(
            "The app {version} crashes on my {device} as soon as I open the {thing} page.",
            "Since the last update the app closes by itself with {error}, even after I installed it again.",
            "Version {version} freezes at the logo, my {device} gets hot and I have to restart it.",
            "Whenever I try to upload a photo the app shows {error} and everything that I typed is lost.",
        ),
        detail=(
            "It is a {device}, app {version}, account {email}, and it happens on the mobile network too.",
            "I cleared the cache and installed it anew on {day}, the error is still {error}.",
            "It worked until {day}, then {version} came and since then it takes {minutes} seconds to fail.",
        ),
        finding=(
            "There are {minutes} reports today of {error} in {module}, all of them with {version}.",
            "The crash comes from {module} when the time zone of the {device} changes, tracked as BUG-{bug}.",
            "Your app keeps a damaged image in its cache, that is why a plain new installation does not help.",
        ),
        solved=(
            "The hotfix after {version} is in the store now, with it the {thing} page opens again.",
            "Please sign out, remove the app, restart the {device} and install it: the cache is then rebuilt.",
        ),
        unsolved=(
            "The developers have confirmed BUG-{bug}, but there is no release date for the correction yet.",
            "The {device} no longer gets system updates, and {version} will not run on it reliably.",
        ),
    ),
    Issue(
        kind=PASSWORD_RESET,
        opening=(
            "The link for a new password is expired as soon as it arrives, it took {minutes} minutes this time.",
            "I requested a password reset for {email} four times and no mail has come, not even in the spam folder.",
            "My password manager lost the entry for your shop, and the reset page only says {error}.",
            "I set a new password on {day}, it worked once, and now it is called invalid.",
        ),
        detail=(
            "The address is {email}, my last order was {order}, and I live in {city}.",
            "I use a {device}, and the mails from you usually land in the folder for notices.",
            "The password has twenty characters and an umlaut in it, perhaps that is the reason.",
        ),
        finding=(
            "Mails to {email} are accepted by your provider but delayed for up to {minutes} minutes.",
            "There are two accounts under similar addresses, and the reset went to the older one.",
            "The old form cuts passwords after sixteen characters, the new login page does not.",
        ),
        solved=(
            "I have sent a link to {email} that stays valid until {eta}, and it has been delivered already.",
            "The two accounts are merged, your orders including {order} are all in one place now.",
        ),
        unsolved=(
            "Your mail provider blocks our address, and until that is lifted no link can reach you.",
            "The details do not match what is stored, so I am not allowed to send a link to another address.",
        ),
    ),
    Issue(
        kind=WARRANTY,
        opening=(
            "Is my {product} still under warranty? I bought it on {date} and now {fault}.",
            "The repair of my {thing} was declined as wear, but {fault}, and that is hardly wear.",
            "I lost the receipt for the {product}, the serial number is {serial}, can the warranty still be used?",
            "A workshop in {city} asks {amount} to mend the {model}, I thought that this was covered.",
        ),
        detail=(
            "The serial is {serial}, it was bought with order {order}, and it has only been used in {place}.",
            "It began on {day}: first a clicking noise, after that {fault}.",
            "The workshop wrote a report, number {request}, and names the part {sku} as the cause.",
        ),
        finding=(
            "The {model} with {serial} is covered until {eta}, and what you describe is not excluded.",
            "The warranty ended a few weeks ago, but there is a goodwill budget of {part} for this series.",
            "The report of the workshop names moisture as the cause, which the terms exclude.",
        ),
        solved=(
            "The repair is accepted as a warranty case, the box for the {thing} arrives on {eta}.",
            "I have approved an exchange under goodwill, the new {model} ships as {order2}.",
        ),
        unsolved=(
            "Without a proof of purchase I cannot open a warranty case, a card statement would be enough.",
            "The maker has rejected the claim, the only offer left is a repair for {part}.",
        ),
    ),
    Issue(
        kind=EMAIL_CHANGE,
        opening=(
            "I want to change my mail address to {email}, the form says that it is already in use.",
            "My old provider closes down on {day}, how do I move my account and the points to {email}?",
            "Somebody registered with my address {email}, I receive their order confirmations for {order}.",
            "Please correct my name in the account, it should be {name} after my marriage.",
        ),
        detail=(
            "The new address is {email}, the customer card ends in {card}, the city is {city}.",
            "I still have access to the old mailbox until {day}, so a confirmation there is possible.",
            "The last mail I got by mistake was about {order} and some {thing} that I never bought.",
        ),
        finding=(
            "The address {email} belongs to a guest account from {date} that has no orders of its own.",
            "The other customer mistyped one letter, their real address differs from {email} by that.",
            "Points can be moved between accounts as long as both bear the name {name}.",
        ),
        solved=(
            "Your account runs under {email} from now on, please confirm it with the link within {days} days.",
            "I have taken your address out of the other account and closed its open sessions.",
        ),
        unsolved=(
            "A change of name needs a document, and documents are only accepted through the secure form.",
            "Both accounts have an open order, and until {order} is delivered they cannot be merged.",
        ),
    ),
    Issue(
        kind=SYNC_FAILURE,
        opening=(
            "My {product} does not connect to the app any more, the pairing stops at {error}.",
            "The data of my {thing} has not been synchronised since {day}, the history simply ends there.",
            "After the firmware {version} was installed the {product} disappears from the network every night.",
            "The {model} is found by my {device}, but then it says {error} and the light blinks orange.",
        ),
        detail=(
            "The serial is {serial}, firmware {version}, and it stands in {place} two rooms from the router.",
            "The phone is a {device}, other things such as the {thing2} connect without any trouble.",
            "I reset it by holding the button for {minutes} seconds, it comes back and fails again with {error}.",
        ),
        finding=(
            "The {model} reports a weak signal and firmware {version}, which drops the connection at night.",
            "The pairing key on the {device} is from before the update, so the {thing} refuses it.",
            "Our sync service had a disturbance on {day}, your measurements are queued on the device.",
        ),
        solved=(
            "Please delete the {thing} in the app, restart both and pair them again, the log shows it connected.",
            "I have pushed the firmware after {version} to {serial}, it installs itself tonight.",
        ),
        unsolved=(
            "The self test ends with {error}, which points to the radio module and cannot be mended remotely.",
            "A router of this kind is not supported by the {model}, and I know of no way around that.",
        ),
    ),
    Issue(
        kind=DATA_REQUEST,
        opening=(
            "Please delete my account {email} and everything that you have stored about me.",
            "I would like a copy of all my data including the chats, the export has been pending since {day}.",
            "I still get advertising at {email} although I objected to it twice, most recently on {date}.",
            "Which companies did you pass my address in {city} to? I get letters about some {thing}.",
        ),
        detail=(
            "My name is {name}, the account is {email}, and the last order was {order}.",
            "The export page shows {error} since {day}, the progress bar stays at ninety percent.",
            "The last advertising mail came on {day} and was about the {product}.",
        ),
        finding=(
            "The export for {email} is ready, but its notification was held back by {error}.",
            "Order {order} is inside the statutory retention period, so the invoice has to stay.",
            "The objection was stored for the shop, while the magazine list is kept by another system.",
        ),
        solved=(
            "The download link is on its way to {email} and works until {eta}.",
            "You are off every list now, and the deletion takes effect on {eta} unless you object.",
        ),
        unsolved=(
            "The request needs the data protection officer, who answers in writing by {eta}.",
            "There is still an open amount of {part} on the account, it cannot be closed before.",
        ),
    ),
)
