"""Words that say how a thing is asked, not what, in the languages that most of the world's support is given in. Pure.

Articles, pronouns, auxiliaries, prepositions, conjunctions, question words; as folded text has
them. Chinese, Japanese, Korean and Thai need none: of pairs of characters the frequency tells which are common.
"""

from __future__ import annotations

from collections.abc import Collection

__all__ = ["ENGLISH", "LANGUAGES", "stopwords_for"]

ENGLISH = frozenset(
    """
    a about after again all also am an and any are as at be because been before being but by can cannot could did do
    does doing don done down during each few for from further had has have having he her here hers him his how i if in
    into is it its itself just ll may me might more most must my no nor not now of off on once only or other our ours
    out over own re s same shall she should so some such t than that the their theirs them then there these they this
    those through to too under until up us ve very was we were what when where which while who whom whose why will
    with would yes you your yours
    """.split()
)

LANGUAGES = {
    "German": frozenset(
        """
        aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dein dem den der des dich die
        dir doch du durch ein eine einem einen einer eines er es euch euer fur hab habe haben hat hatte hier ich ihm
        ihn ihr ihre im in ist ja kann kein keine man mein meine meinem meinen meiner mich mir mit muss nach nicht
        noch nur ob oder ohne schon sein seine sich sie sind so uber um und uns unser unter vom von vor wann war waren
        warum was weil welche wenn wer werden wie wieder wir wird wo zu zum zur
        """.split()
    ),
    "French": frozenset(
        """
        a ai ainsi alors apres au aux avant avec avez avons c ce ces cet cette ceux chez comme comment d dans de
        depuis des donc du elle elles en encore est et etait ete etes etre eu fait il ils j je l la le les leur leurs
        lui m ma mais me mes moi mon n ne nos notre nous on ont ou par parce pas pour pourquoi qu quand que quel
        quelle qui s sa sans se ses si son sont sous suis sur t ta te tes toi ton tous tout tres tu un une vos votre
        vous y
        """.split()
    ),
    "Spanish": frozenset(
        """
        a al algo antes aqui asi aun aunque como con cual cuando cuanto de del desde donde dos el ella ellas ellos en
        entre era eres es esa ese eso esta estaba estado estan estas este esto estoy fue ha hace han hasta hay he la
        las le les lo los mas me mi mis muy nada ni no nos nosotros o os otra otro para pero poco por porque que quien
        se ser si sido sin sobre son soy su sus tambien te tengo tiene tienen todo todos tu tus un una uno unos usted
        ustedes y ya yo
        """.split()
    ),
    "Portuguese": frozenset(
        """
        a ainda ao aos as ate com como da das de dela dele depois do dos e ela elas ele eles em entre era essa esse
        esta estao estas estava este estes estou eu foi foram ha isso isto ja lhe mais mas me mesmo meu meus minha
        minhas muito na nao nas nem no nos nossa nosso num numa o onde os ou para pela pelo por porque qual quando que
        quem sao se sem ser seu seus so sua suas tambem te tem tenho ter teu tua um uma umas voce voces
        """.split()
    ),
    "Italian": frozenset(
        """
        a ad agli ai al alla alle allo anche ancora avete aveva c che chi ci co come con cos cosa cosi da dagli dai
        dal dalla dei del della delle di dov dove e ed era essere fa gli ha hai hanno ho i il in io l la le lei li lo
        loro lui ma me mi mia mie miei mio ne nei nel nella no noi non nostro o per perche piu poi qual quale quando
        quella quello questa questo qui se sei si sia siamo sono sta stato su sua sue sui sul sulla suo te ti tra tu
        tua tuo un una uno vi voi
        """.split()
    ),
    "Dutch": frozenset(
        """
        aan al alles als altijd ben bij daar dan dat de der deze die dit doch doen door dus een en er ge geen haar had
        heb hebben heeft hem het hier hij hoe hun iets ik in is ja je jij jou jouw kan kon kunnen maar me meer men met
        mij mijn moet na naar niet niets nog nu of om omdat ons onze ook op over reeds te tot u uit uw van veel voor
        waar waarom want waren was wat we wel werd wie wij wil worden wordt ze zelf zich zij zijn zo zonder zou
        """.split()
    ),
    "Polish": frozenset(
        """
        a aby ale bardzo bez bo by byc byl byla bylo co czy dla do gdy gdzie go i ich ile im ja jak jaki jako jego jej
        jest jestem jeszcze juz kiedy kto ktora ktore ktory lub ma mam mi mnie moj moja moje mozna na nad nas nasz nie
        o od on ona one oni oraz po pod przez przy sa sie sobie ta tak takze tam te tego tej ten to tu ty tym w was we
        wy z za ze zeby
        """.split()
    ),
    "Turkish": frozenset(
        """
        acaba ama ancak bana bazi ben beni benim bir biraz biz bize bizim bu bunu bunun cok cunku da daha de degil
        diye en gibi hem hep her hic icin ile ise iste kadar ki kim mi mu nasil ne neden nerede niye o olan olarak
        oldu olsa on ona onlar onu onun sana sen seni senin siz sizin su var ve veya ya yok
        """.split()
    ),
    "Russian": frozenset(
        """
        а без более бы был была были было быть в вам вас ведь во вот все всего вы где да даже для до его ее если есть
        еще же за здесь и из или им их к как какая какои когда кто ли либо мне мои моя мы на надо нам нас не него нее
        нет ни но ну о об он она они оно от очень по под после потому почему при с со так также там те тем то того
        тоже тои только том ты у уже хотя чего чеи чем что чтобы эта эти это этот я
        """.split()
    ),
}

# One may be a word of another language: `die` is an article and an end. And a letter is one of any.
FEWEST_WORDS, FEWEST_LETTERS = 2, 2


def stopwords_for(words: Collection[str]) -> frozenset[str]:
    """Choose the stopwords of a query: the English ones, and those of the language that it seems to be in.

    Args:
        words: the words of the query, folded and in lower case.

    Returns:
        Beside the English ones those of the language which has most words in common with the query, if these are two at
        least and more than the English ones.
    """
    said = {word for word in words if len(word) >= FEWEST_LETTERS}
    name = max(LANGUAGES, key=lambda language: len(said & LANGUAGES[language]))
    common = len(said & LANGUAGES[name])
    return ENGLISH | LANGUAGES[name] if common >= FEWEST_WORDS and common > len(said & ENGLISH) else ENGLISH
